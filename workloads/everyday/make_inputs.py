"""Writes the larger inputs of the everyday programs: C for gcc, PostScript for ghostscript, a problem for z3.

    python3 workloads/everyday/make_inputs.py FOLDER

Deterministic: the same files every time. Numbers in names are sizes.
"""

from __future__ import annotations

import sys
from pathlib import Path


def c_source(functions: int = 1500) -> str:
    """Small functions, 220 bytes each."""
    lines = ["#include <stdio.h>", "#include <math.h>"]
    for i in range(functions):
        lines.append(
            f"static double f{i}(double x,int n){{double s=0;for(int i=0;i<n;i++){{s+=x*i/{i + 1}.0;"
            f"if(s>{i}e3)s-=sqrt(x+i);switch(i%7){{case 0:s*=1.1;break;case 1:s/=1.2;break;case 3:s+=3;break;"
            f"default:s-=.5;}}}}return s;}}"
        )
    calls = "".join(f"t+=f{i}({i}.5,{i % 13});" for i in range(functions))
    lines.append(f'int main(){{double t=0;{calls}printf("%g\\n",t);}}')
    return "\n".join(lines) + "\n"


def postscript(pages: int = 12) -> str:
    """Pages of curves and words."""
    lines = ["%!PS"]
    for page in range(pages):
        for i in range(3000):
            x, y = (i * 37 + page * 11) % 550, (i * 91) % 780
            lines.append(
                f"{x} {y} moveto {x + 20} {y + 3} {x + 30} {y + 40} {x + 5} {y + 60} curveto "
                f"{(i % 10) / 10} setgray 0.5 setlinewidth stroke"
            )
            lines.append(f"/Helvetica findfont {6 + i % 9} scalefont setfont {x} {y} moveto (t{i}) show")
        lines.append("showpage")
    return "\n".join(lines) + "\n"


def problem(holes: int = 9) -> str:
    """One pigeon more than there are holes, beside a chain of integer bounds."""
    lines = [f"(declare-const x{p}_{h} Bool)" for p in range(holes + 1) for h in range(holes)]
    for p in range(holes + 1):
        lines.append("(assert (or " + " ".join(f"x{p}_{h}" for h in range(holes)) + "))")
    for h in range(holes):
        for a in range(holes + 1):
            lines.extend(f"(assert (or (not x{a}_{h}) (not x{b}_{h})))" for b in range(a))
    for i in range(200):
        before = f"r{i - 1}" if i else "0"
        lines.append(f"(declare-const r{i} Int)(assert (> r{i} {i}))(assert (< (+ r{i} {before}) {i * 3 + 500}))")
    lines.append("(check-sat)")
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    """Write the files into the folder named; 2 when none is."""
    if len(arguments) != 1:
        print("usage: make_inputs.py FOLDER", file=sys.stderr)
        return 2
    folder = Path(arguments[0])
    folder.mkdir(parents=True, exist_ok=True)
    inputs = {
        "functions.c": c_source(),
        "functions-120.c": c_source(120),
        "pages.ps": postscript(),
        "pages-1.ps": postscript(1),
        "pigeons.smt2": problem(),
        "pigeons-8.smt2": problem(8),
        "pigeons-7.smt2": problem(7),
    }
    for name, text in inputs.items():
        (folder / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
