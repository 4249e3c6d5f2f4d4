"""What PyPI's kconfiglib makes of the trees below the folder given.

Each sub-folder holds Kconfig and cases.txt, .config texts between lines of RS
characters. Writes expected.txt beside them: for a tree that cannot be read the
word ERROR; else the configs of alldefconfig, allyesconfig, allnoconfig, then for
each case the config, the minimal config and the new symbols, all between RS.
"""
import os
import sys

import kconfiglib

RS = "\x1e"


def forms(kconf):
    new = []
    for sym in kconf.unique_defined_syms:
        free = sym.choice or sym.orig_type in (kconfiglib.INT, kconfiglib.HEX, kconfiglib.STRING)
        if sym.user_value is None and (len(sym.assignable) > 1 or sym.visibility and free):
            # As listnewconfig prints it: n as a value, not as a comment.
            is_switch = sym.orig_type in (kconfiglib.BOOL, kconfiglib.TRISTATE)
            line = f"{kconf.config_prefix}{sym.name}={sym.str_value}"
            new.append(line if is_switch else sym.config_string.rstrip("\n"))
    # What write_config and write_min_config write, without the files.
    return [kconf._config_contents(""), kconf._min_config_contents(""), "\n".join(new)]


def read(name):
    with open(name, encoding="utf-8") as file:
        return file.read()


def set_all(kconf, value, member):
    kconf.unset_values()
    for sym in kconf.unique_defined_syms:
        if sym.orig_type in (kconfiglib.BOOL, kconfiglib.TRISTATE):
            sym.set_value(member if sym.choice else 2 if sym.is_allnoconfig_y else value)


def expected():
    try:
        kconf = kconfiglib.Kconfig("Kconfig", warn=False)
    except (kconfiglib.KconfigError, RecursionError) as error:
        return ["ERROR", str(error)]
    parts = [forms(kconf)[0]]
    set_all(kconf, 2, 1)
    for choice in kconf.unique_choices:
        choice.set_value(2)
    parts.append(forms(kconf)[0])
    set_all(kconf, 0, 0)
    parts.append(forms(kconf)[0])
    for case in read("cases.txt").split(RS):
        with open("case", "w", encoding="utf-8") as file:
            file.write(case)
        # load_config alone lets a choice keep the member picked before.
        kconf.unset_values()
        kconf.load_config("case")
        parts += forms(kconf)
    return parts


def main():
    root = os.path.abspath(sys.argv[1])
    for name in sorted(os.listdir(root)):
        os.chdir(os.path.join(root, name))
        os.environ["srctree"] = os.getcwd()
        text = RS.join(expected())
        with open("expected.txt", "w", encoding="utf-8") as file:
            file.write(text)


main()
