"""What the tests of several processes share: how they are started, looked for, and compared."""

import json
import os
import struct

ENVIRONMENT = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
               "OMPI_MCA_rmaps_base_oversubscribe": "1"}


def numbers_of(path):
    """Every tensor of a checkpoint, and what it says about the run, but for times."""
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    metadata = header.pop("__metadata__")
    tensors = {name: data[slice(*entry["data_offsets"])] for name, entry in header.items()}
    history = [row[:4] + row[5:] for row in json.loads(metadata["train.history"])]
    training = {key: value for key, value in metadata.items()
                if key.startswith("fenestra.training.") and not key.endswith("checksum")}
    return tensors, history, training


def processes_of(parent):
    """The processes below one, as the system has them now."""
    below = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                text = file.read()
        except OSError:
            continue
        if int(text.rpartition(")")[2].split()[1]) == parent:
            below += [int(name)] + processes_of(int(name))
    return below


def is_tool(pid, tool):
    try:
        return os.path.realpath(f"/proc/{pid}/exe") == os.path.realpath(tool)
    except OSError:
        return False
