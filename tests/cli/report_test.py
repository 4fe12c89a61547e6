#!/usr/bin/env python3
"""Reports of trainings and of the bench: read as pages, and opened in a browser where there is one. Called with
report_pages, which writes them; a folder after it keeps pages and screenshots to look at."""

import base64
import binascii
import html
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

from page import Page, table_after

PROGRAM = sys.argv[1]
KEPT = sys.argv[2] if len(sys.argv) > 2 else None
NAMES = ["classification", "segmentation", "reconstruction", "signals", "wild", "empty", "bench"]
EVIL = "<script>alert('1')</script>"
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")


def png_size(data):
    """Width and height; asserts that the file is whole, by its own checksums."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, size, pixels = 8, None, b""
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + length]
        assert struct.unpack(">I", data[at + 8 + length:at + 12 + length])[0] == binascii.crc32(kind + body)
        size = struct.unpack(">II", body[:8]) if kind == b"IHDR" else size
        pixels += body if kind == b"IDAT" else b""
        at += 12 + length
    zlib.decompress(pixels)
    return size


class Reports(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = None if KEPT else tempfile.TemporaryDirectory()
        cls.folder = KEPT or cls.temporary.name
        subprocess.run([PROGRAM, cls.folder], check=True, timeout=120)
        cls.texts = {}
        for name in NAMES:
            with open(cls.path(name), encoding="utf-8", errors="replace") as file:
                cls.texts[name] = file.read()
        cls.pages = {name: Page(text) for name, text in cls.texts.items()}

    @classmethod
    def tearDownClass(cls):
        if cls.temporary:
            cls.temporary.cleanup()

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder, name + ".html")

    def headings(self, name):
        return re.findall(r"<h2[^>]*>(.*?)</h2>", self.texts[name])


class Structure(Reports):
    def test_every_page_is_well_formed_and_needs_nothing_else(self):
        for name, page in self.pages.items():
            with self.subTest(name):
                self.assertEqual(page.faults, [])
                self.assertEqual(len(page.ids), len(set(page.ids)))
                for link in page.links:
                    self.assertTrue(link.startswith("#") and link[1:] in page.ids, link)
                tags = {tag for tag, _ in page.tags}
                self.assertFalse({"script", "link", "iframe", "object", "form"} & tags)
                for outside in ["http:", "https:", "url(", "@import", "//"]:
                    text = re.sub(r"base64,[^\"]*", "", self.texts[name])
                    self.assertNotIn(outside, text)
                for _, given in page.tags:
                    self.assertFalse([key for key in given if key.startswith("on")])

    def test_a_page_has_one_heading_and_its_parts_in_order(self):
        for name, page in self.pages.items():
            with self.subTest(name):
                self.assertEqual(len(page.named("h1")), 1)
                self.assertEqual([given for given in page.named("html")], [{"lang": "en"}])
                levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch(r"h\d", tag)]
                for above, below in zip(levels, levels[1:]):
                    self.assertLessEqual(below, above + 1)
                sections = [given["id"] for given in page.named("h2")]
                self.assertEqual(page.links, ["#" + one for one in sections])

    def test_pictures_are_whole_files_with_words_for_those_who_do_not_see_them(self):
        for name, page in self.pages.items():
            for given in page.named("img"):
                self.assertTrue(given["alt"])
                head, data = given["src"].split(",")
                self.assertEqual(head, "data:image/png;base64")
                size = png_size(base64.b64decode(data, validate=True))
                self.assertEqual(size, (int(given["width"]), int(given["height"])))
            for given in page.named("svg"):
                self.assertTrue(given["aria-label"])

    def test_no_number_of_a_drawing_is_none(self):
        for name, page in self.pages.items():
            for tag, given in page.tags:
                for key in ["d", "x", "y", "width", "height", "style"]:
                    self.assertNotRegex(given.get(key) or "", r"nan|inf", (name, tag, key))

    def test_each_kind_shows_its_own_parts(self):
        self.assertEqual(self.headings("classification"), [
            "How it learned", "Confusion matrix", "Worst mistakes", "Saliency",
            "Filters of the first convolution", "Feature maps", "Layers",
            "Where time and memory went", "Made with"])
        self.assertIn("Segmentation", self.headings("segmentation"))
        self.assertNotIn("Confusion matrix", self.headings("segmentation"))
        self.assertEqual(self.headings("reconstruction"), ["How it learned", "Reconstructions"])
        self.assertEqual(self.headings("empty"), [])
        self.assertIn("nothing to show", self.pages["empty"].words)

    def test_the_command_that_reproduces_it_stands_there(self):
        shown = re.search(r"<pre><code>(.*?)</code></pre>", self.texts["classification"]).group(1)
        shown = html.unescape(re.sub(r"<[^>]*>", "", shown))
        self.assertTrue(shown.startswith("fenestra train lenet --data digits --epochs 12 "), shown)

    def test_numbers_of_the_data_stand_on_the_page(self):
        words = self.pages["classification"].words
        for expected in ["98.89\u00a0%", "61,706", "45.1 MiB", "AVX2", "taken for", "conv2, backward",
                         "416,520", "21.7 s"]:
            self.assertIn(expected, words)
        rows = self.texts["classification"].split('class="confusion"')[1].split("</table>")[0]
        self.assertEqual(len(re.findall(r'<td class="right', rows)), 10)
        self.assertEqual(len(re.findall(r'<td class="wrong', rows)), 3)
        self.assertIn("mean IoU", self.pages["segmentation"].words)

    def test_a_step_has_a_row_for_each_layer_and_a_sum(self):
        rows = table_after(self.texts["classification"], "step")
        self.assertEqual(rows[0], ["layer", "of all", "forward", "backward"])
        self.assertEqual([row[0].split()[0] for row in rows[1:]],
                         ["conv1", "relu1", "level.skip.1.level.skip.1.level.skip.1.level.down.second.conv",
                          "flatten", "classifier.4", "loss", "all"])
        self.assertTrue(rows[1][0].endswith("conv 5x5, 6 filters, padding 2, 117,600 multiply-adds"), rows[1])
        self.assertEqual(rows[1][1:], ["0.3\u00a0%", "412 us", "1.3 ms"])
        self.assertEqual(rows[2][1:], ["0.0\u00a0%", "–", "13 us"])
        self.assertEqual(rows[4][1:], ["", "–", "–"])
        self.assertEqual(rows[5][2:], ["2 us", "<\u00a01 us"])
        self.assertEqual(rows[6][0], "loss")
        self.assertEqual(rows[7][2:], ["154 ms", "343 ms"])
        self.assertIn("1,240,118,440 multiply-adds", rows[7][0])

    def test_memory_has_a_row_for_each_purpose_and_the_peak(self):
        rows = {row[0].split("  ")[0]: row[1] for row in table_after(self.texts["classification"], "memory")}
        self.assertEqual(rows["parameters"], "241 KiB")
        self.assertEqual(rows["arena"], "11.7 MiB")
        self.assertEqual(rows["the process at its peak"], "45.1 MiB")
        # What is not known is said to be so.
        self.assertEqual(rows["activations"], "–")
        self.assertIn("not known of an eager run", self.pages["classification"].words)

    def test_text_of_others_stays_text(self):
        self.assertNotIn(EVIL, self.texts["wild"])
        self.assertGreater(self.pages["wild"].words.count(EVIL), 8)
        self.assertNotIn("\x01", self.texts["wild"])

    def test_pages_are_small(self):
        for name, text in self.texts.items():
            self.assertLess(len(text), 400_000, name)


@unittest.skipUnless(BROWSER, "no Chromium")
class Browser(Reports):
    # Asks the page, in frames of several widths, what does not fit, what did not load and what went
    # wrong; the answer becomes the document.
    ASK = """<!DOCTYPE html><body style="margin:0"><script>
    const widths = [400, 1600], answers = {};
    let left = widths.length;
    for (const width of widths) {
      const frame = document.createElement("iframe");
      frame.style = `border:0; width:${width}px; height:2000px`;
      frame.srcdoc = PAGE;
      frame.onload = () => {
        const page = frame.contentDocument, root = page.documentElement;
        const view = frame.contentWindow;
        const hidden = e => { for (let p = e.parentElement; p; p = p.parentElement)
          if (view.getComputedStyle(p).overflowX != "visible") return true; return false; };
        answers[width] = {
          scroll: root.scrollWidth,
          wide: [...page.querySelectorAll("body *")].filter(e => !e.closest("svg") && !hidden(e) &&
            e.getBoundingClientRect().right > width + 1).map(e => e.outerHTML.slice(0, 90)),
          broken: [...page.images].filter(i => !i.complete || !i.naturalWidth).length,
          small: [...page.querySelectorAll("p, td, th, figcaption, span, dd, dt, li")].filter(e =>
            e.textContent.trim() && parseFloat(view.getComputedStyle(e).fontSize) < 9).length,
          dark: view.matchMedia("(prefers-color-scheme: dark)").matches,
          paper: view.getComputedStyle(page.body).backgroundColor,
          ink: view.getComputedStyle(page.body).color};
        if (--left == 0) document.body.textContent = JSON.stringify(answers);
      };
      document.body.append(frame);
    }
    </script>"""

    def browse(self, *arguments):
        with tempfile.TemporaryDirectory() as profile:
            return subprocess.run(
                [BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                 "--disable-dev-shm-usage", f"--user-data-dir={profile}", *arguments],
                capture_output=True, text=True, timeout=240)

    def ask(self, name, *arguments):
        text = json.dumps(self.texts[name]).replace("</", "<\\/")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "ask.html")
            with open(path, "w", encoding="utf-8") as file:
                file.write(self.ASK.replace("PAGE", text))
            done = self.browse("--virtual-time-budget=20000", "--enable-logging=stderr", *arguments,
                               "--dump-dom", "file://" + path)
        self.assertNotRegex(done.stderr, r"CONSOLE.*(Uncaught|Error)", done.stderr)
        found = re.search(r"<body[^>]*>(\{.*\})</body>", done.stdout, re.S)
        self.assertIsNotNone(found, done.stdout[-500:] + done.stderr[-500:])
        return json.loads(html.unescape(found.group(1)))

    def test_pages_fit_narrow_and_wide_windows(self):
        for name in ["classification", "signals", "segmentation", "wild", "bench"]:
            for width, answer in self.ask(name).items():
                with self.subTest(name=name, width=width):
                    self.assertLessEqual(answer["scroll"], int(width), answer["wide"])
                    self.assertEqual(answer["wide"], [])
                    self.assertEqual(answer["broken"], 0)
                    self.assertEqual(answer["small"], 0)
                    self.assertFalse(answer["dark"])

    def test_dark_is_dark(self):
        light = self.ask("classification")["1600"]
        dark = self.ask("classification", "--blink-settings=preferredColorScheme=0")["1600"]
        self.assertTrue(dark["dark"])
        brightness = lambda colour: sum(map(int, re.findall(r"\d+", colour)[:3]))
        self.assertGreater(brightness(light["paper"]), brightness(light["ink"]) + 300)
        self.assertGreater(brightness(dark["ink"]), brightness(dark["paper"]) + 300)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
