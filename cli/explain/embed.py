#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""embed.py - a text as lines of C. Usage: embed.py TEXT SOURCE"""
import json
import sys

with open(sys.argv[1], encoding="ascii") as text, open(sys.argv[2], "w", encoding="ascii") as source:
    source.write('#include "cli/explain/html.h"\n\n#include <stddef.h>\n\nconst char *const explain_html_page[] = {\n')
    source.writelines(f"    {json.dumps(line)},\n" for line in text if "SPDX" not in line)
    source.write("    NULL,\n};\n")
