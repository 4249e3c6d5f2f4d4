"""What fio's steadystate_tests.py needs of SciPy, which is not installed for it."""
