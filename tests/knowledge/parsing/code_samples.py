"""Source code in each language that has a grammar, and the paths of its parts. LONG makes a class long."""

PYTHON = '''\
"""A module."""
import os


# About run.
@cache
def run():
    def inner(): ...


class Tea:
    """Tea."""

    hot = True

    async def brew(self):
        LONG

    @property
    def cup(self): ...


run()
'''

JAVASCRIPT = """\
import x from 'x';

/** Runs. */
export async function run() {}
const add = (a, b) => a + b;
const one = 1;
export default class Tea {
  brew() { 'LONG' }
  static cup() {}
}
"""

TYPESCRIPT = """\
interface Cup { size: number }
type Tea = string;
abstract class Pot<T> {
  constructor(a: T) { 'LONG' }
  pour(): void {}
}
export enum Kind { Green }
"""

TSX = """\
export const Cup = () => <div>tea</div>;
"""

JAVA = """\
package a;

/** Tea. */
public class Tea {
  int hot; // LONG
  Tea() {}
  void brew() {}
  record Cup(int size) {}
}
"""

GO = """\
package a

// Tea is tea.
type Tea struct{ hot bool }

func (t *Tea) Brew() {}

func run[T any]() {}
"""

RUST = """\
use std::io;

#[derive(Debug)]
struct Tea;

impl Tea {
    fn brew(&self) { "LONG"; }
    fn cup() {}
}

mod a { fn b() {} }
"""

SOURCES: dict[str, tuple[str, list[tuple[str, ...]]]] = {
    "python": (PYTHON, [(), ("run",), ("Tea",), ("Tea", "brew"), ("Tea", "cup"), ()]),
    "javascript": (JAVASCRIPT, [(), ("run",), ("add",), (), ("Tea",), ("Tea", "brew"), ("Tea", "cup")]),
    "typescript": (TYPESCRIPT, [("Cup",), ("Tea",), ("Pot",), ("Pot", "constructor"), ("Pot", "pour"), ("Kind",)]),
    "tsx": (TSX, [("Cup",)]),
    "java": (JAVA, [(), ("Tea",), ("Tea", "Tea"), ("Tea", "brew"), ("Tea", "Cup")]),
    "go": (GO, [(), ("Tea",), ("Tea", "Brew"), ("run",)]),
    "rust": (RUST, [(), ("Tea",), ("Tea",), ("Tea", "brew"), ("Tea", "cup"), ("a",)]),
}
