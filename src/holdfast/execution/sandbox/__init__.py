"""Runs programs that nobody has reviewed, such as scripts of models and skills, under limits and without access.

`SandboxProcesses` starts a program in the sandbox and connects its standard streams. `Sandbox` runs a script with its
files and collects the output. `attacks` is what the sandbox has to withstand before anything runs in it.
"""

from holdfast.execution.sandbox.limits import SandboxLimits
from holdfast.execution.sandbox.processes import ProcessEnding, SandboxedProcess, SandboxProcesses, Surroundings

__all__ = ["ProcessEnding", "SandboxLimits", "SandboxProcesses", "SandboxedProcess", "Surroundings"]
