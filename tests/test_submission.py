"""What a job takes along from where it was asked for, and what nobody else may see."""

from __future__ import annotations

import pytest

from bough.core.model import JobSpec, Range, Role
from bough.records import Recipe
from bough.submission import many_workers, name_of, prepare, snapshot


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("python train.py --epochs 90", "train"),
        ("python3.11 -u -m lab.train", "lab.train"),
        ("torchrun --nproc-per-node=8 /data/finetune.py", "finetune"),
        ("env A=1 ./run_all.sh fast", "run_all"),
        ("nvidia-smi -L", "nvidia-smi"),
        ("python -c pass", "python"),
        ("/bin/sh -c ls", "sh"),
        ("true", "true"),
        ("§§§", "job"),
    ],
)
def test_a_job_is_named_after_what_it_runs(command: str, name: str) -> None:
    assert name_of(command.split()) == name


def test_the_shell_the_token_and_what_is_no_text_stay_behind() -> None:
    environment = {"PATH": "/bin", "_": "/bin/x", "BOUGH_TOKEN": "s", "ODD": "\udcff", "É": "ü"}
    assert snapshot(environment) == {"PATH": "/bin", "É": "ü"}


def test_commands_move_to_where_only_the_owner_sees_them() -> None:
    role = Role(name="ps", command=("serve",))
    made = prepare(JobSpec(name="a", command=("x",), roles=(role,)), Recipe(cwd="/data"))
    assert made.spec == JobSpec(name="a", roles=(Role(name="ps"),))
    assert made.recipe == Recipe(argv=("x",), cwd="/data", roles={"ps": ("serve",)})
    assert made.key


def test_lines_are_told_apart_where_there_may_be_several_workers() -> None:
    wide, one = JobSpec(name="a", devices=Range(min=1, max=4)), JobSpec(name="a")
    assert many_workers(wide, Recipe())
    assert not many_workers(wide, Recipe(launch="one"))
    assert not many_workers(one, Recipe())
    roles = (Role(name="ps", devices=0), Role(name="worker"))
    assert many_workers(JobSpec(name="a", roles=roles), Recipe(launch="one"))
