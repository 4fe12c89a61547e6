"""A page of ours, as a program reads it: whether its tags match, what it links to, what it says."""

import html
import html.parser
import re


class Page(html.parser.HTMLParser):
    VOID = {"meta", "br", "img", "wbr"}

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.links, self.tags, self.faults = [], [], [], [], []
        self.words = ""
        self.feed(text)
        self.close()
        self.faults += [f"<{tag}> is not closed" for tag in self.open]

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.tags.append((tag, given))
        self.ids += [given["id"]] if "id" in given else []
        self.links += [given["href"]] if "href" in given else []
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"</{tag}> at {self.getpos()}")

    def handle_data(self, data):
        self.words += data

    def named(self, tag):
        """The attributes of every such tag."""
        return [given for name, given in self.tags if name == tag]


def table_after(text, heading):
    """The rows of the first table after a heading with that id: lists of the words of their cells."""
    table = text.split(f'id="{heading}"')[1].split("</table>")[0].replace("<wbr>", "")
    return [[html.unescape(re.sub(r"<[^>]*>", "  ", cell)).strip()
             for cell in re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row)]
            for row in re.findall(r"<tr>(.*?)</tr>", table, re.S)]
