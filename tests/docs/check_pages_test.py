#!/usr/bin/env python3
"""check_pages finds what is broken: on trees of one page."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

CHECK_PAGES = pathlib.Path(__file__).parent / "check_pages"
SLURM = "#!/bin/bash\n#SBATCH --ntasks=16\nsrun --mpi=pmix fenestra train lenet \\\n     --leaf 8\n"
JOB = "kind: MPIJob\nmetadata:\n  name: photos\nspec: {volumes: [{name: data}]}\n"


class CheckPagesTest(unittest.TestCase):
    def complaints(self, text):
        """The exit code, and what is said of a tree whose only page besides the map has this text."""
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder)
            (source / "docs").mkdir()
            (source / "docs" / "reference-map.md").write_text("| `Holds` |\n")
            (source / "docs" / "page.md").write_text(text)
            tests = source / "fenestra" / "ops" / "reference_map_test.cpp"
            tests.parent.mkdir(parents=True)
            tests.write_text("TEST(ReferenceMap, Holds) {}\n")
            done = subprocess.run([sys.executable, "-B", CHECK_PAGES, source], capture_output=True, text=True)
            return done.returncode, done.stdout + done.stderr

    def assert_refused(self, text, complaint):
        code, said = self.complaints(text)
        self.assertEqual(code, 1, said)
        self.assertIn(complaint, said)
        self.assertIn("1 complaints", said)

    def test_a_whole_page_passes(self):
        code, said = self.complaints(f"# A\n[a](#a)\n```sh\n{SLURM}```\n```yaml\n{JOB}```\n")
        self.assertEqual(code, 0, said)

    def test_shell_that_bash_does_not_read_fails(self):
        self.assert_refused(f"# A\n```sh\n{SLURM.replace('--leaf 8', '--leaf $(nproc')}```\n", "page.md:3: this is no sh")
        self.assert_refused(f"```sh\nif true; then\n{SLURM}```\n", "page.md:2: this is no sh")

    def test_yaml_that_has_no_structure_fails(self):
        self.assert_refused(f"```yaml\n{JOB.replace('}]}', '}]')}```\n", "page.md:2: this is no yaml")
        self.assert_refused(f"```yaml\n{JOB.replace('  name', chr(9) + 'name')}```\n", "page.md:2: this is no yaml")

    def test_a_link_to_nowhere_fails(self):
        self.assert_refused("[there](nowhere.md)\n", "there is no nowhere.md")


if __name__ == "__main__":
    unittest.main()
