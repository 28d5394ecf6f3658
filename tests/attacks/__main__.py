"""Try all attacks, and print a table of them: `python -m tests.attacks [WORDS]`."""

import sys
import tempfile
from pathlib import Path

from tests.attacks.arena import field_of, harm_of
from tests.attacks.table import ATTACKS


def main(words: list[str]) -> int:
    """Try the attacks whose kind and name have all `words`; return 1 if one does harm."""
    chosen = [attack for attack in ATTACKS if all(word in f"{attack.kind} {attack.name}" for word in words)]
    tries = harms = 0
    print("| attack | tries | most memory, MiB | most CPU, s | result |\n|---|--:|--:|--:|---|")
    for attack in chosen:
        with tempfile.TemporaryDirectory() as root, field_of(attack, Path(root) / "field") as field:
            results = []
            for number, attempt in enumerate(attack.tries):
                out = Path(root) / "out" / str(number)
                out.mkdir(parents=True)
                results.append(harm_of(attack, attempt, field, out / "x.zarr"))
        tries += len(results)
        bad = [f"{result.attempt}: {result.harm}" for result in results if result.harm]
        harms += len(bad)
        memory, cpu = max(result.memory for result in results) >> 20, max(result.cpu for result in results)
        said = "**" + "; ".join(bad) + "**" if bad else results[0].outcome.splitlines()[0][:100]
        print(f"| {attack.kind}: {attack.name} | {len(results)} | {memory} | {cpu:.1f} | {said} |", flush=True)
    print(f"\n{len(chosen)} attacks, {tries} tries, {harms} with harm")
    return int(harms > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
