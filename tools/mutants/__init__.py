"""Mutation testing of `core/`: plant small mistakes, one at a time, and see that a test notices each of them.

`operators` says which mistakes there are, `running` plants them in a process that has imported all tests already, and
`known.txt` names the mistakes that no test can or needs to notice, each with its reason.

Only the bodies of functions are changed: tables, defaults and what runs while a module is imported are not. Nor are
assertions, which are judges themselves, and the words of log lines and of errors.
"""
