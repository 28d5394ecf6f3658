"""Measurements of omnizarr beside other libraries and beside what the machine can do, all in one run.

``python -m benchmarks --help`` says how to run them. Everything that is measured is named once, in `workloads`; what
omnizarr promises there, in `targets`; the participants, in `peers`.

Each library lives in a worker process of its own and is spoken to over pipes (`worker`, `running`): one library's
settings, pools of threads and crashes cannot touch another's, both engines of omnizarr (chosen by the environment)
and all pipelines of zarr-python (chosen by its configuration) run in the same run, and a library that the running
interpreter does not have may be found in another (``--python``). Workers take turns, round by round, so that a
slow minute of the machine is slow for all; a worker times itself, so that pipes cost nothing; a waiting worker sleeps.
"""
