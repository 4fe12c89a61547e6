#!/usr/bin/env python3
"""What belongs to a shell: help, version, completion, the manual page, and errors for people and for
programs. Called with the tool."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from tool import USAGE, ToolTest


class ShellTest(ToolTest):
    def commands(self, *path):
        """The parts of a command, from its help."""
        out, _ = self.run_tool(*path, "--help")
        parts = re.search(r"(?ms)^Subcommands:\n(.*?)(?:\n\n|\Z)", out)
        return re.findall(r"(?m)^  (\w+) ", parts.group(1)) if parts else []

    def all_paths(self, *path):
        yield path
        for name in self.commands(*path):
            yield from self.all_paths(*path, name)

    def options(self, *path):
        out, _ = self.run_tool(*path, "--help")
        lines = re.findall(r"(?m)^  (?:-\w,)?(--[\w,-]+)", out)
        return [name for line in lines for name in line.split(",")]


class Help(ShellTest):
    def test_help_prints_what_the_flag_prints(self):
        for path in self.all_paths():
            out, err = self.run_tool("help", *path)
            self.assertEqual((out, err), self.run_tool(*path, "--help"))
            self.assertTrue(path or len(self.commands()) >= 7)

    def test_help_for_what_is_not_there_suggests_the_nearest(self):
        _, err = self.run_tool("help", "explian", code=USAGE)
        self.assertIn('there is no command "explian", did you mean explain?', err)
        _, err = self.run_tool("help", "explain", "modle", code=USAGE)
        self.assertIn('there is no command "explain modle", did you mean model?', err)

    def test_version_is_one_line(self):
        out, _ = self.run_tool("version")
        self.assertRegex(out, r"^fenestra \d+\.\d+\.\d+\n$")
        version = json.loads(self.run_tool("version", "--json")[0])["version"]
        self.assertEqual(out, f"fenestra {version}\n")
        self.assertEqual(json.loads(self.run_tool("info", "--json")[0])["version"], version)


class Errors(ShellTest):
    def test_what_is_not_there_gets_the_nearest_that_is(self):
        for arguments, expected in [
            (["chek"], "did you mean check?"),
            (["explain", "conv", "x=1", "--kernel"], "there is no option --kernel, did you mean --kernels?"),
            (["explain", "conv", "x=1", "--kernel=3"], "did you mean --kernels?"),
            (["check", "conv", "--case", "3"], "did you mean --cases?"),
            (["train", "lenet", "--data", "digits", "--augment", "shift=1"], "did you mean --augmentation?"),
            (["--verson"], "did you mean --version?"),
            (["explain", "model", "lenet", "--form", "stop"],
             '--form: "stop" is none of run, step, infer, did you mean step?'),
            (["completion", "fish"], '"fish" is none of bash, zsh'),
            (["info", "extra"], '"extra" is one word too many'),
            (["explain", "model", "lenet", "--memory-limit", "10XB"], '"XB" is no unit'),
            (["explain", "model", "lenet", "--memory-limit", "0kB"], "less than 1 bytes"),
        ]:
            with self.subTest(arguments):
                out, err = self.run_tool(*arguments, code=USAGE)
                self.assertEqual(out, "")
                self.assertIn(expected, err)
                self.assertRegex(err, r"(?m)^Try: fenestra .*--help$")

    def test_the_hint_names_the_whole_command(self):
        _, err = self.run_tool("explain", "model", "lenet", "--foo", code=USAGE)
        self.assertIn("Try: fenestra explain model --help", err)

    def test_usage_errors_are_json_too(self):
        for arguments in [["chek"], ["check"], [], ["--foo"], ["check", "conv", "--cases", "0"],
                          ["explain", "model", "lenet", "--form", "x"], ["check", "all", "x=1"],
                          ["help", "nothing"], ["completion"]]:
            with self.subTest(arguments):
                out, err = self.run_tool(*arguments, "--json", code=USAGE)
                error = json.loads(out)["error"]
                self.assertEqual(list(error), ["code", "operator", "argument", "axis", "message"])
                self.assertEqual(error["code"], "usage")
                self.assertIn(error["message"], err)

    def test_units_are_read(self):
        def limit(text):
            return self.run_tool("explain", "model", "lenet", "--threads", "1", "--memory-limit",
                                 text)[0]
        self.assertEqual(limit("10MB"), limit("10000000"))
        self.assertEqual(limit("1MiB"), limit(str(2**20)))
        self.assertIn("at most 1 MiB", limit("1MiB"))


class Completion(ShellTest):
    def complete(self, *words):
        """What bash offers for the last of the words."""
        script, _ = self.run_tool("completion", "bash")
        quoted = " ".join(f"'{word}'" for word in ("fenestra", *words))
        script += (f"\nCOMP_WORDS=({quoted}); COMP_CWORD={len(words)}; _fenestra; "
                   "printf '%s\\n' \"${COMPREPLY[@]}\"\n")
        done = subprocess.run(["bash", "--norc"], input=script, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.split()

    def test_bash_completes_every_command_and_option(self):
        for path in self.all_paths():
            with self.subTest(path):
                offered = self.complete(*path, "")
                self.assertLessEqual(set(self.commands(*path)), set(offered))
                options = self.complete(*path, "--")
                self.assertEqual(sorted(options), sorted(self.options(*path)))

    def test_bash_completes_words_and_values(self):
        self.assertEqual(self.complete("ch"), ["check"])
        self.assertEqual(self.complete("explain", "adaptive_m"), ["adaptive_max_pool"])
        self.assertIn("model", self.complete("explain", "m"))
        self.assertEqual(self.complete("explain", "model", "--form", ""), ["run", "step", "infer"])
        self.assertEqual(self.complete("explain", "model", "res"), ["resnet18"])
        self.assertEqual(self.complete("check", "conv", "--cases", ""), [])
        for command in ("train", "summary", "bench", "gradcheck"):
            self.assertIn("mobilenet_v2", self.complete(command, "mobilenet_"))
        for command in ("train", "eval", "finetune", "gradcheck"):
            self.assertEqual(self.complete(command, "--data", "fo"), ["folder"])
        self.assertEqual(self.complete("train", "lenet", "--optimiser", "rm"), ["rmsprop"])
        self.assertEqual(self.complete("finetune", "--loss", "hu"), ["huber"])
        self.assertEqual(self.complete("completion", ""), ["bash", "zsh"])
        # A value is no command.
        self.assertEqual(self.complete("explain", "--axis", "model", "--form"), [])
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "plan.html")
            open(path, "w").close()
            self.assertEqual(self.complete("explain", "model", "--output", path[:-3]), [path])
            self.assertEqual(self.complete("summary", path[:-3]), [path])

    def test_zsh_reads_the_script_and_has_every_command_and_option(self):
        script, _ = self.run_tool("completion", "zsh")
        self.assertTrue(script.startswith("#compdef fenestra\n"))
        for path in self.all_paths():
            name = "_".join(["_fenestra", *path])
            body = re.search(rf"(?ms)^{name}\(\) {{\n(.*?)^}}", script)
            self.assertIsNotNone(body, name)
            for option in self.options(*path):
                self.assertIn(f"'{option}[", body.group(1))
            for command in self.commands(*path):
                self.assertIn(f"{name}_{command} ;;", body.group(1))
        if not shutil.which("zsh"):
            self.skipTest("no zsh")
        done = subprocess.run(["zsh", "-f", "-n"], input=script, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_zsh_completes(self):
        if not shutil.which("zsh"):
            self.skipTest("no zsh")
        script, _ = self.run_tool("completion", "zsh")
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "_fenestra"), "w", encoding="utf-8") as file:
                file.write(script)
            # A shell in a shell's pseudo-terminal, where a tabulator is a key.
            driver = (
                "zmodload zsh/zpty\n"
                "zpty shell 'TERM=dumb zsh -f -i'\n"
                f"zpty -w shell 'PROMPT=; fpath=({folder} $fpath); autoload -U compinit; "
                "compinit -u -D; zstyle \":completion:*\" list-prompt \"\"; echo ready'\n"
                "zpty -r shell seen '*ready*ready*' \n"
                "zpty -n -w shell $'fenestra explain model --form in\\t'\n"
                "sleep 1\n"
                "zpty -n -w shell $'fe\\n'\n"
                "sleep 1\n"
                "zpty -r -t shell more; print -r -- $more; while zpty -r -t shell more; do "
                "print -r -- $more; done\n"
                "zpty -d shell\n")
            done = subprocess.run(["zsh", "-f"], input=driver, capture_output=True, text=True,
                                  timeout=60)
            self.assertIn("--form infer", done.stdout, done.stderr)


class Manual(ShellTest):
    def test_the_page_has_every_command_and_option(self):
        page, err = self.run_tool("man")
        self.assertEqual(err, "")
        self.assertTrue(page.startswith(".TH FENESTRA 1 "))
        plain = page.replace("\\-", "-")
        for variable in ("THREADS", "ISA", "KERNEL", "DATA", "MPI"):
            self.assertIn(f"\\fBFENESTRA_{variable}\\fR", plain)
        for path in self.all_paths():
            self.assertIn(f"\\fBfenestra{''.join(' ' + word for word in path)}\\fR", plain)
            for option in self.options(*path):
                self.assertIn(f"\\fB{option}\\fR", plain)

    def test_groff_has_nothing_to_say(self):
        if not shutil.which("groff"):
            self.skipTest("no groff")
        page, _ = self.run_tool("man")
        done = subprocess.run(["groff", "-man", "-ww", "-Tutf8", "-P-c"], input=page,
                              capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("fenestra explain model", done.stdout)
        self.assertIn('fenestra explain conv "x=8x3x32x32 w=16x3x3x3 stride=2 padding=1"',
                      re.sub(r"[‐−]", "-", done.stdout))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
