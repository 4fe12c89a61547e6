// Marks what the shared library shows; everything else is hidden. So is, with clang, what has a
// hidden type among its template arguments: the enumerations of layers are marked, too.
#pragma once

#define FENESTRA_API __attribute__((visibility("default")))
