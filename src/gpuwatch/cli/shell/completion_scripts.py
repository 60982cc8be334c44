"""The completion functions of each shell; its script embeds the :mod:`.completion_table`.

All three shells do the same: find the command, skip the values of flags, and offer the values of
the flag before the cursor or of the positional argument. After ``--`` the shell completes the other
program. Only session names are asked from gpuwatch itself, see :mod:`..selection.session_names`.
These names are untrusted: a shell must take them literally, and expand nothing in them.
"""

from __future__ import annotations

BASH = r"""_gpuwatch_load() {
    declare -gA _gpuwatch_takes=() _gpuwatch_flags=()
    declare -g _gpuwatch_commands=''
    local command flag kind words help
    while IFS='|' read -r command flag kind words help; do
        if [[ -z $flag ]]; then
            _gpuwatch_commands+=" $command"
            continue
        fi
        _gpuwatch_takes["$command|$flag"]="$kind|$words"
        [[ $flag == -* ]] && _gpuwatch_flags["|$command"]+=" $flag"
    done <<<"$_gpuwatch_table"
}

_gpuwatch_offer() {  # kind, words, what was typed
    local image name
    case $1 in
        word) COMPREPLY=($(compgen -W "$2" -- "$3")) ;;
        workload) COMPREPLY=($(compgen -W "$_gpuwatch_workloads" -- "$3")) ;;
        env)
            if [[ $3 == *=* ]]; then
                image=${3#*=}
                compopt -o filenames
                mapfile -t COMPREPLY < <(compgen -f -P "${3%%=*}=" -- "$image")
            else
                COMPREPLY=($(compgen -W "$_gpuwatch_environments" -- "$3"))
            fi ;;
        session)
            quoted=yes
            compopt -o nosort 2>/dev/null
            while IFS= read -r name; do
                [[ $name == "$3"* ]] && COMPREPLY+=("$name")
            done < <(
                [[ $3 == */* ]] || command gpuwatch --complete-sessions 2>/dev/null </dev/null
                compgen -f -X '!*.gpuwatch' -- "$3"; compgen -d -S / -- "$3" | grep -v '^\.'
            ) ;;
        study)
            compopt -o filenames
            mapfile -t COMPREPLY < <(
                compgen -W "$2" -- "$3"; compgen -f -X '!*.toml' -- "$3"; compgen -d -- "$3") ;;
        file) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$3") ;;
        folder) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- "$3") ;;
    esac
    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[=:/] ]] && compopt -o nospace
}

_gpuwatch() {
    local line=${COMP_LINE:0:COMP_POINT} command='' word current takes number=0 i tail quoted=''
    local -a words
    COMPREPLY=()
    read -a words <<<"$line"  # a blank behind a backslash is part of a word
    [[ $line == *[!\\][[:space:]] ]] && words+=('')
    current=${words[-1]}
    [[ -v _gpuwatch_takes ]] || _gpuwatch_load
    if [[ ${#words[@]} -gt 2 ]]; then
        [[ " $_gpuwatch_commands " == *" ${words[1]} "* ]] && command=${words[1]}
        [[ -z $command && " ${words[*]:1:${#words[@]}-2} " == *' --record '* ]] && command=--record
    fi
    for ((i = 1; i < ${#words[@]} - 1; i++)); do
        word=${words[i]}
        takes=''
        if [[ $word == -- ]]; then
            if declare -F _command_offset >/dev/null; then
                for ((i = 1; i < COMP_CWORD; i++)); do
                    [[ ${COMP_WORDS[i]} == -- ]] && _command_offset $((i + 1)) && return
                done
            elif ((i == ${#words[@]} - 2)); then
                COMPREPLY=($(compgen -c -- "$current"))
            else
                _gpuwatch_offer file '' "$current"
            fi
            return
        elif [[ $word == -* ]]; then
            takes=${_gpuwatch_takes["$command|$word"]-}
            [[ $takes == none* ]] && takes=''
            [[ -n $takes ]] && ((i < ${#words[@]} - 2)) && ((i++))
        elif [[ $word != "$command" ]]; then
            ((number++))
        fi
    done
    if [[ $current == --*=* ]]; then
        takes=${_gpuwatch_takes["$command|${current%%=*}"]-}
        _gpuwatch_offer "${takes%%|*}" "${takes#*|}" "${current#*=}"
        COMPREPLY=("${COMPREPLY[@]/#/${current%%=*}=}")
    elif [[ -n $takes && ${words[-2]} == -* ]]; then
        _gpuwatch_offer "${takes%%|*}" "${takes#*|}" "$current"
    elif [[ $current == -* ]]; then
        word=${_gpuwatch_flags["|$command"]-}
        [[ -z $command ]] && word+=" $_gpuwatch_commands"
        COMPREPLY=($(compgen -W "$word" -- "$current"))
    elif [[ -z $command && $number -eq 0 ]]; then
        COMPREPLY=($(compgen -W "$_gpuwatch_commands" -- "$current"))
    else
        takes=${_gpuwatch_takes["$command|$((number + 1))"]-${_gpuwatch_takes["$command|*"]-}}
        _gpuwatch_offer "${takes%%|*}" "${takes#*|}" "$current"
    fi
    # Readline replaces only what stands behind the last of its word breaks.
    tail=$current
    [[ $COMP_WORDBREAKS == *=* ]] && tail=${tail##*=}
    [[ $COMP_WORDBREAKS == *:* ]] && tail=${tail##*:}
    COMPREPLY=("${COMPREPLY[@]#"${current%"$tail"}"}")
    if [[ -n $quoted ]]; then
        for i in "${!COMPREPLY[@]}"; do
            printf -v word %q "${COMPREPLY[i]}"
            COMPREPLY[i]=${word/#'\~'/'~'}
        done
    fi
}

complete -F _gpuwatch gpuwatch
"""

ZSH = r"""_gpuwatch_row() {  # command, flag: the row's fields, without the empty string at its end
    reply=("${(@s:|:)${(@f)_gpuwatch_table}[(r)$1\|$2\|*]}")
}

_gpuwatch_offer() {  # kind, words
    local -a names
    case $1 in
        word) compadd -- ${=2} ;;
        workload)
            compadd -- ${=_gpuwatch_workloads% torchvision:}
            compadd -S '' -- torchvision: ;;
        env)
            if compset -P '*='; then
                _files
            else
                compadd -- ${(M)${=_gpuwatch_environments}:#*[^=]}
                compadd -S '' -- ${(M)${=_gpuwatch_environments}:#*=}
            fi ;;
        session)
            if [[ $PREFIX != */* ]]; then
                names=("${(@f)$(command gpuwatch --complete-sessions 2>/dev/null </dev/null)}")
                compadd -V names -- "${(@)names:#}"
            fi
            _path_files -g '*.gpuwatch'
            _path_files -/ ;;
        study) compadd -- ${=2}; _files -g '*.toml' ;;
        file) _files ;;
        folder) _files -/ ;;
    esac
}

_gpuwatch() {
    local command='' word kind='' words_of='' number=0 i
    local -a reply described rows
    rows=("${(@f)_gpuwatch_table}")
    if (( CURRENT > 2 )); then
        [[ -n ${rows[(r)${words[2]}\|\|\|*]} ]] && command=$words[2]
        [[ -z $command && -n ${words[2,CURRENT-1][(r)--record]} ]] && command=--record
    fi
    for ((i = 2; i < CURRENT; i++)); do
        word=$words[i] kind=''
        if [[ $word == -- ]]; then
            shift $i words
            (( CURRENT -= i ))
            _normal
            return
        elif [[ $word == -* ]]; then
            _gpuwatch_row "$command" "$word"
            kind=$reply[3] words_of=$reply[4]
            [[ $kind == none ]] && kind=''
            [[ -n $kind ]] && (( i < CURRENT - 1 )) && (( i++ ))
        elif [[ $word != $command ]]; then
            (( number++ ))
        fi
    done
    word=$words[CURRENT]
    if [[ $word == --*=* ]]; then
        _gpuwatch_row "$command" "${word%%=*}"
        compset -P '--[^=]#='
        _gpuwatch_offer "$reply[3]" "$reply[4]"
    elif [[ -n $kind && $words[CURRENT-1] == -* ]]; then
        _gpuwatch_offer "$kind" "$words_of"
    elif [[ $word == -* ]]; then
        for word in ${(M)rows:#$command\|--*}; do
            reply=("${(@s:|:)word}")
            described+=("$reply[2]:$reply[5]")
        done
        [[ -z $command ]] && described+=("--record:without a screen")
        _describe -o -t options option described
    elif [[ -z $command && $number -eq 0 ]]; then
        for word in ${(M)rows:#[a-z]*\|\|\|*}; do
            reply=("${(@s:|:)word}")
            described+=("$reply[1]:$reply[5]")
        done
        _describe -t commands command described
    else
        _gpuwatch_row "$command" $((number + 1))
        [[ -z $reply[3] ]] && _gpuwatch_row "$command" '\*'
        _gpuwatch_offer "$reply[3]" "$reply[4]"
    fi
}

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _gpuwatch "$@"
else
    compdef _gpuwatch gpuwatch
fi
"""

FISH = r"""function __gpuwatch_row --argument-names command flag
    for row in $__gpuwatch_table
        if string match --quiet -- "$command|$flag|*" $row
            string split -- '|' $row
            return
        end
    end
end

function __gpuwatch_offer --argument-names kind words current before
    switch $kind
        case word
            string split --no-empty ' ' -- $words
        case workload
            string split ' ' -- $__gpuwatch_workloads
        case env
            if set -l parts (string split --max 1 = -- $current); and test (count $parts) -eq 2
                set -l kind $parts[1]
                string replace --regex -- '^' "$kind=" (__fish_complete_path $parts[2])
            else
                string split ' ' -- $__gpuwatch_environments
            end
        case session
            if not string match --quiet -- '*/*' $current
                command gpuwatch --complete-sessions 2>/dev/null </dev/null
            end
            __fish_complete_path $current |
                string match --regex -- '^[^\t]*(?:/|\.gpuwatch)(?:\t.*)?$'
        case study
            string split --no-empty ' ' -- $words
            __fish_complete_suffix .toml
        case file
            __fish_complete_path $current
        case folder
            __fish_complete_directories $current ''
    end
end

function __gpuwatch_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l command ''
    set -l kind ''
    set -l choices ''
    set -l number 0
    set -e words[1]
    if set -q words[1]
        test -n "$(__gpuwatch_row $words[1] '')"; and set command $words[1]
        test -z "$command"; and contains -- --record $words; and set command --record
    end
    set -l skip no
    for i in (seq (count $words))
        set -l word $words[$i]
        if test $skip = yes
            set skip no
            set kind ''
            continue
        end
        set kind ''
        if test "$word" = --
            set -e words[1..$i]
            complete -C (string join ' ' -- (string escape -- $words) $current)
            return
        else if string match --quiet -- '-*' $word
            set -l row (__gpuwatch_row "$command" $word)
            if set -q row[3]; and test $row[3] != none
                set kind $row[3]
                set choices $row[4]
                set skip yes
            end
        else if test "$word" != "$command"
            set number (math $number + 1)
        end
    end
    if string match --quiet -- '--*=*' $current
        set -l parts (string split --max 1 = -- $current)
        set -l row (__gpuwatch_row "$command" $parts[1])
        set -l values (__gpuwatch_offer "$row[3]" "$row[4]" "$parts[2]")
        string replace --regex -- '^' "$parts[1]=" $values
    else if test -n "$kind"
        __gpuwatch_offer $kind "$choices" "$current"
    else if string match --quiet -- '-*' $current
        for row in (string match -- "$command|--*" $__gpuwatch_table)
            set -l fields (string split -- '|' $row)
            printf '%s\t%s\n' $fields[2] $fields[5]
        end
        test -z "$command"; and printf '%s\t%s\n' --record 'without a screen'
    else if test -z "$command" -a $number -eq 0
        for row in (string match -- '*||||*' $__gpuwatch_table)
            set -l fields (string split -- '|' $row)
            printf '%s\t%s\n' $fields[1] $fields[5]
        end
    else
        set -l row (__gpuwatch_row "$command" (math $number + 1))
        set -q row[1]; or set row (__gpuwatch_row "$command" '\*')
        set -q row[3]; and __gpuwatch_offer $row[3] "$row[4]" "$current"
    end
end

complete --keep-order --command gpuwatch --no-files --arguments '(__gpuwatch_complete)'
"""
