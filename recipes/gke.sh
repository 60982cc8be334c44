#!/usr/bin/env bash
# A cluster of Google Kubernetes Engine with the accelerators that you name, for gpuwatch ... --on kubernetes.
#
#   gke.sh up NAME ACCELERATOR[:COUNT]... [--region=REGION | --zone=ZONE] [--project=ID] [--spot] [--yes]
#   gke.sh down NAME [--zone=ZONE] [--project=ID] [--yes]
#
# `up lab nvidia-tesla-t4 nvidia-l4` looks for a zone that offers both and has quota, and for machine types that fit,
# shows what it would make, asks, and makes it: a cluster of one small node, and a node pool for each accelerator, named
# after it, with the driver that Google installs. What exists already is kept: a later `up` adds pools. What fails half
# way is ended. A pool has no node while no pod wants its GPUs for about ten minutes; the rest costs until `down`.
# It needs gcloud, kubectl and gke-gcloud-auth-plugin. No cloud has run it yet: docs/validation.md.
set -euo pipefail

LABEL=gpuwatch=recipe # a cluster without it is neither changed nor deleted
IMAGE=pytorch/pytorch:2.8.0-cuda12.8-cudnn9-runtime
PRICES='https://cloud.google.com/compute/gpus-pricing, https://cloud.google.com/compute/vm-instance-pricing and
               https://cloud.google.com/kubernetes-engine/pricing (this script is told no prices)'
QUOTAS=https://console.cloud.google.com/iam-admin/quotas

say() { printf 'gke.sh: %s\n' "$*" >&2; }
fail() { # WHAT FIX
  say "error: $1; $2"
  exit 1
}
usage() {
  sed -n '4,5s/^#   /  /p' "${BASH_SOURCE[0]}" >&2
  exit 2
}

named() { # --OPTION=NAME
  [[ ${1#*=} =~ ^[a-z0-9][-a-z0-9.:]*$ ]] || fail "${1%%=*} cannot be '${1#*=}'" "write a name of Google Cloud's"
  echo "${1#*=}"
}

accelerators=() counts=() project='' zone='' region='' spot='' yes='' before=''

read_words() { # WORD...
  (($# >= 2)) || usage
  verb=$1 name=$2
  shift 2
  [[ $verb == up || $verb == down ]] || usage
  [[ $name =~ ^[a-z]([-a-z0-9]{0,38}[a-z0-9])?$ ]] ||
    fail "'$name' cannot name a cluster" "write up to 40 of a-z, 0-9 and -, such as lab"
  local word
  for word; do
    case $word in
      --project=?*) project=$(named "$word") ;;
      --region=?*) region=$(named "$word") ;;
      --zone=?*) zone=$(named "$word") ;;
      --spot) spot=yes ;;
      --yes) yes=yes ;;
      -*) usage ;;
      *)
        [[ $word =~ ^([a-z][-a-z0-9]{0,38}[a-z0-9])(:([1-9][0-9]?))?$ ]] ||
          fail "'$word' is no accelerator" "list them: gcloud compute accelerator-types list"
        accelerators+=("${BASH_REMATCH[1]}")
        counts+=("${BASH_REMATCH[3]:-1}")
        ;;
    esac
  done
  if [[ $verb == up ]]; then
    ((${#accelerators[@]})) || fail "no accelerator is named" "name one: gke.sh up $name nvidia-tesla-t4"
  elif ((${#accelerators[@]})) || [[ -n $region$spot ]]; then
    usage
  fi
}

check_tools() {
  local tool
  for tool in gcloud kubectl gke-gcloud-auth-plugin; do
    command -v "$tool" >/dev/null ||
      fail "there is no $tool" "install it: https://cloud.google.com/kubernetes-engine/docs/how-to/cluster-access-for-kubectl"
  done
  [[ -n $(gcloud auth list --filter=status:ACTIVE --format='value(account)') ]] ||
    fail "gcloud has no account" "log in: gcloud auth login"
  [[ -n $project ]] || project=$(gcloud config get-value project)
  [[ -n $project ]] || fail "gcloud has no project" "name one: --project=ID"
}

existing_zone() { # prints the zone of the cluster, if there is one
  local found location label
  found=$(gcloud container clusters list --project="$project" --filter="name~^$name\$${zone:+ AND location~^$zone\$}" \
    --format='csv[no-heading](location,resourceLabels.gpuwatch)')
  [[ -n $found ]] || return 0
  [[ $found != *$'\n'* ]] || fail "there are several clusters $name" "say which: --zone=ZONE"
  IFS=, read -r location label <<<"$found"
  [[ $label == "${LABEL#*=}" ]] ||
    fail "the cluster $name in $location was not made by gke.sh" "choose another name"
  echo "$location"
}

# ------------------------------------------------------------------------------------------ up
quota_name() { # ACCELERATOR: as Compute Engine calls its quota, such as NVIDIA_T4_GPUS
  local short=${1#nvidia-}
  short=${short#tesla-}
  short=${short^^}
  echo "${spot:+PREEMPTIBLE_}NVIDIA_${short//-/_}_GPUS"
}

free_of() { # METRIC, and on standard input NAME,METRIC,LIMIT,USAGE; prints NAME FREE
  awk -F, -v metric="$1" '$2 == metric {print $1, int($3 - $4)}'
}

check_quota_everywhere() {
  local free wanted=0 count
  for count in "${counts[@]}"; do wanted=$((wanted + count)); done
  free=$(gcloud compute project-info describe --project="$project" --flatten='quotas[]' \
    --format='csv[no-heading](name,quotas.metric,quotas.limit,quotas.usage)' | free_of GPUS_ALL_REGIONS)
  free=${free##* }
  if [[ -z $free ]]; then
    say "quota GPUS_ALL_REGIONS of $project is not told; see $QUOTAS"
  elif ((free < wanted)); then
    fail "$project may use $free more GPUs in all regions, and $wanted are asked for" "raise GPUS_ALL_REGIONS: $QUOTAS"
  fi
}

choose_zone() { # sets zone and quota_told
  local every offered i candidate limits=() free
  [[ -z $zone ]] || every=$zone
  for i in "${!accelerators[@]}"; do
    offered=$(gcloud compute accelerator-types list --project="$project" --filter="name~^${accelerators[i]}\$" \
      --format='value(zone.basename())' | sort)
    [[ -n $offered ]] ||
      fail "no zone offers ${accelerators[i]}" "list what there is: gcloud compute accelerator-types list"
    every=$(comm -12 <(echo "${every-$offered}") <(echo "$offered"))
  done
  [[ -z $region ]] || every=$(grep "^$region-[a-z]*\$" <<<"$every" || true)
  [[ -n $every ]] ||
    fail "no zone${zone:+ of that name}${region:+ of $region} offers ${accelerators[*]} at once" \
      "name another one, or fewer accelerators: gcloud compute accelerator-types list"
  local told
  told=$(gcloud compute regions list --project="$project" --flatten='quotas[]' \
    --format='csv[no-heading](name,quotas.metric,quotas.limit,quotas.usage)')
  for i in "${!accelerators[@]}"; do
    limits[i]=$(free_of "$(quota_name "${accelerators[i]}")" <<<"$told")
  done
  for candidate in $every; do
    quota_told=''
    for i in "${!accelerators[@]}"; do
      free=$(awk -v region="${candidate%-*}" '$1 == region {print $2}' <<<"${limits[i]}")
      if [[ -z $free ]]; then
        quota_told+="${quota_told:+, }${accelerators[i]} not told, see $QUOTAS"
      elif ((free < counts[i])); then
        continue 2
      else
        quota_told+="${quota_told:+, }${accelerators[i]} $free free in ${candidate%-*}"
      fi
    done
    zone=$candidate
    return
  done
  fail "no region with ${accelerators[*]} has quota left" \
    "raise $(for i in "${accelerators[@]}"; do quota_name "$i"; done | paste -sd' '): $QUOTAS"
}

machine_for() { # ACCELERATOR COUNT: the smallest machine type of the zone that has it, or takes it
  local machine
  machine=$(gcloud compute machine-types list --project="$project" --zones="$zone" --flatten='accelerators[]' \
    --format='csv[no-heading](name,guestCpus,accelerators.guestAcceleratorType,accelerators.guestAcceleratorCount)' |
    awk -F, -v type="$1" -v count="$2" '$3 == type && $4 == count {print $2, $1}' | sort -n | head -n 1)
  if [[ -n $machine ]]; then
    echo "${machine#* }"
  elif [[ $1 =~ ^nvidia-tesla-(k80|p4|p100|t4|v100)$ && $2 =~ ^[1248]$ ]]; then
    echo "n1-standard-$((4 * $2))" # these are attached to machines of the series N1
  else
    fail "no machine type in $zone has $2 of $1" "ask for another number: $1:1"
  fi
}

plan() { # sets create, credentials, and machines: a type for each accelerator
  run=$(od -An -N8 -tx1 /dev/urandom | tr -d ' \n')
  create=(gcloud container clusters create "$name" --project="$project" --zone="$zone" --num-nodes=1
    --machine-type=e2-standard-2 --disk-size=50 --labels="$LABEL,gpuwatch_run=$run")
  credentials=(gcloud container clusters get-credentials "$name" --project="$project" --zone="$zone")
  machines=()
  local i
  for i in "${!accelerators[@]}"; do
    machines[i]=$(machine_for "${accelerators[i]}" "${counts[i]}")
  done
}

pool_of() { # INDEX: sets pool
  pool=(gcloud container node-pools create "${accelerators[$1]}" --project="$project" --zone="$zone" --cluster="$name"
    --machine-type="${machines[$1]}"
    --accelerator="type=${accelerators[$1]},count=${counts[$1]},gpu-driver-version=default"
    --num-nodes=1 --enable-autoscaling --min-nodes=0 --max-nodes=1 --disk-size=100)
  [[ -z $spot ]] || pool+=(--spot)
}

show() {
  local i
  {
    echo "project        $project"
    echo "cluster        $name in $zone, $([[ -n $exists ]] && echo "exists already" || echo "one node e2-standard-2")"
    for i in "${!accelerators[@]}"; do
      echo "node pool      ${accelerators[i]}: 0 or 1 node ${machines[i]} with ${counts[i]} GPU, driver by Google${spot:+, spot}"
    done
    echo "quota          $quota_told"
    echo "price          see $PRICES"
    echo "commands"
    [[ -n $exists ]] || printf '  %s\n' "${create[*]}"
    for i in "${!accelerators[@]}"; do
      pool_of "$i"
      printf '  %s\n' "${pool[*]}"
    done
    printf '  %s\n' "${credentials[*]}"
  } >&2
}

ask() { # QUESTION
  [[ -z $yes ]] || return 0
  [[ -t 0 ]] || fail "nobody is here to be asked" "add --yes"
  local answer
  read -r -p "$1 [y/N] " answer
  [[ $answer == [yY] || $answer == [yY]es ]] || fail "nothing was changed" "answer y next time"
}

is_there() { # MADE: whether this very cluster, or this pool, exists or may exist
  local found
  if [[ $1 == "cluster $name" ]]; then
    found=$(gcloud container clusters list --project="$project" --format='value(name)' \
      --filter="name~^$name\$ AND location~^$zone\$ AND resourceLabels.gpuwatch_run~^$run\$") || return 0
    [[ -n $found ]]
  else
    found=$(pools) || return 0
    grep -qx -- "$1" <<<"$found"
  fi
}

pools() {
  gcloud container node-pools list --cluster="$name" --project="$project" --zone="$zone" --format='value(name)'
}

undo() { # ends what was made, if not all of it was
  local status=$? made delete _
  trap '' INT TERM HUP
  trap - EXIT
  for made in "${unfinished[@]}"; do
    say "ending $made, which is of no use now; it takes minutes"
    delete=(gcloud container node-pools delete "$made" --cluster="$name")
    [[ $made != "cluster $name" ]] || delete=(gcloud container clusters delete "$name")
    for _ in {1..20}; do # while it is still being made, it cannot be deleted
      is_there "$made" || continue 2
      "${delete[@]}" --project="$project" --zone="$zone" --quiet >&2 || sleep 30
    done
    say "error: $made may still be there, and costs money; end it: ${BASH_SOURCE[0]} down $name --project=$project"
    exit 1
  done
  ((${#unfinished[@]} == 0)) || forget_credentials
  exit "$status"
}

forget_credentials() { # of the cluster, unless it was there before
  local kind
  [[ -z $before ]] || kubectl config use-context "$before" >/dev/null || true
  [[ -z $exists ]] || return 0
  for kind in context cluster user; do
    kubectl config "delete-$kind" "$context" >/dev/null 2>&1 || true
  done
}

gpus_of() { # POOL: how many GPUs its first node offers, which it does when its driver works
  local told
  told=$(kubectl --context="$context" get nodes --selector="cloud.google.com/gke-nodepool=$1" \
    --output='jsonpath={.items[0].status.allocatable.nvidia\.com/gpu}' 2>/dev/null) || true
  [[ $told =~ ^[0-9]+$ ]] && echo "$told" || echo 0
}

wait_for_driver() { # INDEX
  local _
  say "waiting for the driver of ${accelerators[$1]}"
  for _ in {1..60}; do
    if (($(gpus_of "${accelerators[$1]}") >= counts[$1])); then
      return
    fi
    sleep 15
  done
  fail "the node of ${accelerators[$1]} offers no GPU after 15 minutes" "look at it: kubectl --context=$context get nodes"
}

refuse_pools_that_exist() {
  local found each
  found=$(pools)
  for each in "${accelerators[@]}"; do
    ! grep -qx -- "$each" <<<"$found" || fail "the cluster $name has a node pool $each already" "leave it out"
  done
}

up() {
  exists=$(existing_zone)
  if [[ -n $exists ]]; then
    [[ -z $zone || $zone == "$exists" ]] || fail "the cluster $name is in $exists" "leave out --zone, or choose another name"
    zone=$exists
    refuse_pools_that_exist
  fi
  check_quota_everywhere
  choose_zone
  plan
  context=gke_${project}_${zone}_$name
  show
  ask "Make it?"
  unfinished=()
  trap undo EXIT
  trap 'exit 130' INT TERM HUP
  if [[ -z $exists ]]; then
    unfinished=("cluster $name")
    "${create[@]}" >&2
  fi
  local i
  for i in "${!accelerators[@]}"; do
    pool_of "$i"
    [[ -z $exists ]] || unfinished+=("${accelerators[i]}")
    "${pool[@]}" >&2
  done
  before=$(kubectl config current-context 2>/dev/null) || before=''
  "${credentials[@]}" >&2 # makes it the current context
  [[ -z $before ]] || kubectl config use-context "$before" >/dev/null
  for i in "${!accelerators[@]}"; do wait_for_driver "$i"; done
  unfinished=()
  for i in "${!accelerators[@]}"; do
    echo "gpuwatch run mnist-cnn --on kubernetes,context=$context,gpu=nvidia.com/gpu:${counts[i]},node=cloud.google.com/gke-accelerator:${accelerators[i]},image=$IMAGE"
  done
  say "the cluster costs until you end it: ${BASH_SOURCE[0]} down $name --project=$project"
}

# ------------------------------------------------------------------------------------------ down
down() {
  zone=$(existing_zone)
  [[ -n $zone ]] || fail "there is no cluster $name in $project" "list them: gcloud container clusters list"
  exists='' context=gke_${project}_${zone}_$name
  ask "Delete the cluster $name in $zone of $project, with all that runs in it?"
  gcloud container clusters delete "$name" --project="$project" --zone="$zone" --quiet
  forget_credentials
  [[ -z $(existing_zone) ]] || fail "the cluster $name is still there" "try again"
  say "$name is gone"
}

read_words "$@"
check_tools
"$verb"
