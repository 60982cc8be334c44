import json
import os
import sys
import time

FOLDER = os.path.dirname(os.path.abspath(__file__))
SHORT = {
    1002: "SMACT", 1003: "SMOCC", 1004: "TENSO", 1005: "DRAMA", 1006: "FP64A", 1007: "FP32A",
    1008: "FP16A", 1009: "PCITX", 1010: "PCIRX", 1011: "NVLTX", 1012: "NVLRX",
}  # fmt: skip
RULE = "+--------+" + "-" * 70 + "+"


def state():
    with open(os.path.join(FOLDER, "state"), encoding="utf-8") as file:
        return json.load(file)


def option(name, default=None):
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else default


def connect():
    if state().get("gone"):
        host = option("--host", "localhost")
        print(f"Error: unable to establish a connection to the specified host: {host}")
        print(
            "Error: Unable to connect to host engine. Host engine connection invalid/disconnected."
        )
        sys.exit(213)


def discovery():
    uuids = state()["uuids"]
    print(f"{len(uuids)} GPU{'' if len(uuids) == 1 else 's'} found.")
    print(f"{RULE}\n| GPU ID | {'Device Information':<68} |\n{RULE}")
    for number, uuid in enumerate(uuids):
        print(f"| {number:<6} | {'Name: NVIDIA A100-SXM4-40GB':<68} |")
        print(f"|        | {'PCI Bus ID: 00000000:1B:00.0':<68} |")
        print(f"|        | {'Device UUID: ' + uuid:<68} |\n{RULE}")
    print("0 NvSwitches found.\n+-----------+\n| Switch ID |\n+-----------+\n+-----------+")


def dmon():
    fields = [int(field) for field in option("-e").split(",")]
    ids = [int(number) for number in option("-i").split(",")]

    def header():
        print("#Entity   " + "".join(f"{SHORT[field]:<13}" for field in fields))
        print("ID        " + "".join(f"{'':<13}" for field in fields), flush=True)

    header()
    refused = state().get("watches")
    if refused and (state().get("watches_all") or len(fields) > 4):
        print(f"Error setting watches. Result: {refused}", file=sys.stderr)
        sys.exit(1)
    lines = 0
    while True:
        now = state()
        if now.get("gone"):
            print(
                "Error getting values information. Return -21: "
                "Host engine connection invalid/disconnected",
                file=sys.stderr,
            )
            sys.exit(235)
        if not now.get("silent"):
            for number in ids:
                values = now["values"][now["uuids"][number]]
                row = ""
                for field in fields:
                    value = values[str(field)] if lines else None
                    if value is None:
                        text = "N/A"
                    else:
                        text = str(value) if field >= 1009 else f"{value:.3f}"
                    row += f"{text:<13}"
                print(f"{f'GPU {number}':<10}{row}")
            sys.stdout.flush()
            lines += 1
        time.sleep(int(option("-d", "1000")) / 1000)
        if lines % 15 == 14:
            header()


with open(os.path.join(FOLDER, "calls"), "a", encoding="utf-8") as log:
    log.write(json.dumps({"arguments": sys.argv[1:], "pid": os.getpid()}) + "\n")
connect()
{"discovery": discovery, "dmon": dmon}[sys.argv[1]]()
