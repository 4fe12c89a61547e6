// Marks what the shared library shows; everything else is hidden.
#pragma once

#define FENESTRA_API __attribute__((visibility("default")))
