"""Fenced code blocks of a Markdown file, and the commands in them. For the scripts of this folder."""

import dataclasses
import re
import shlex
import subprocess

FENCE = re.compile(r"^```(\w*)\s*$")
HEADING = re.compile(r"^#+\s+(.*)$")


@dataclasses.dataclass
class Block:
    language: str
    text: str
    line: int  # of the first line inside the fence, from 1
    heading: str  # the nearest heading above, without the #


def blocks_of(path):
    """Every fenced block of the file, in order."""
    blocks = []
    heading = ""
    opened = None
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        fence = FENCE.match(line)
        if opened is not None:
            if fence:
                blocks.append(opened)
                opened = None
            else:
                opened.text += line + "\n"
        elif fence:
            opened = Block(fence.group(1), "", number + 1, heading)
        elif match := HEADING.match(line):
            heading = match.group(1).strip()
    if opened is not None:
        raise SystemExit(f"{path}:{opened.line - 1}: the block is never closed")
    return blocks


def commands_of(block):
    """(command, expected output) of a console block; lines that start with "$ " are commands."""
    commands = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            commands.append((line[2:], []))
        elif commands:
            commands[-1][1].append(line)
    return [(command, "\n".join(output).strip("\n")) for command, output in commands]


def run_command(command, tool):
    """(exit code, what it prints) of a `fenestra ...` command; a refusal prints its error."""
    result = subprocess.run([tool, *shlex.split(command)[1:]], capture_output=True, text=True)
    printed = result.stderr if result.returncode == 3 else result.stdout
    return result.returncode, printed.strip("\n")


def run_tool_commands(path, tool):
    """Runs every `$ fenestra ...` of the file's console blocks with `tool`; returns (run, wrong).

    Where the page shows an output, it must be the tool's own, line by line; a command exits with 0,
    or with 3 where the page shows a refusal.
    """
    run = wrong = 0
    for block in blocks_of(path):
        if block.language != "console":
            continue
        for command, expected in commands_of(block):
            if not command.startswith("fenestra "):
                continue
            run += 1
            code, printed = run_command(command, tool)
            if code != (3 if expected.startswith("fenestra: [") else 0):
                wrong += 1
                print(f"{path}:{block.line}: `{command}` exits with {code}\n{printed}")
            elif expected and printed != expected:
                wrong += 1
                print(f"{path}:{block.line}: `{command}` prints\n{printed}\n--- the page says")
                print(f"{expected}\n--- fix: tests/docs/update_commands {tool} {path}")
    return run, wrong
