"""Tools for whole hierarchies, one folder for each command.

A package has the public function, which passes all its keywords on: ``run(**locals())`` of the implementation, which is
imported then. Where many parts need them, they are the fields of a ``Task``.
"""
