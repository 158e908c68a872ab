"""Folders that are named after values: found, taken apart, and named as Hive and Spark name them."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import PlanError
from engine.files.hive import NULL_FOLDER, escaped, folder_name, hive_files


def place(folder, *names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"x")


def test_values_are_taken_from_the_folders_below_the_path(tmp_path):
    base = tmp_path / "else=1" / "sales"
    place(
        base, "year=2024/city=S%C3%A3o%20Paulo%2FX/a", f"year=01/city={NULL_FOLDER}/b", "year=01/city=x/_hidden", ".c"
    )
    found = hive_files(base, "read_csv", None)
    assert found.keys == ("year", "city")
    assert [os.path.basename(path) for path in found.paths] == ["b", "a"]  # noqa: PTH119
    assert found.values == (("01", None), ("2024", "São Paulo/X"))
    plain = hive_files(base / "year=2024" / "city=S%C3%A3o%20Paulo%2FX", "read_csv", None)
    assert (plain.keys, plain.values) == ((), ((),))
    globbed = hive_files(f"{base}/*/*/*", "read_csv", True)
    assert globbed.keys == ("else", "year", "city")
    with pytest.raises(PlanError, match="holds no files"):
        hive_files(base, "read_csv", False)


def test_values_that_are_no_utf8_stay_as_they_are_written(tmp_path):
    place(tmp_path, "k=%FF/a", "k=%FE/b", "k=%C3%A9/c", "k=%41/d")
    found = hive_files(tmp_path, "read_csv", None)
    assert sorted(found.values) == [("%FE",), ("%FF",), ("A",), ("é",)]


def test_folders_that_are_not_alike_are_an_error(tmp_path):
    place(tmp_path, "a=1/x", "b=2/y")
    with pytest.raises(PlanError, match=r"lies below b, .* below a; read them as two sources"):
        hive_files(tmp_path, "read_csv", None)
    place(tmp_path, "plain")
    with pytest.raises(PlanError, match=r"no such"):
        hive_files(tmp_path / "none", "read_csv", None)
    with pytest.raises(PlanError, match=r"the file plain beside the folder a=1/ with files in it \(a=1/x\)"):
        hive_files(tmp_path, "read_csv", None)


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=20))
def test_a_folder_has_a_name_that_can_be_and_means_its_value(tmp_path_factory, value):
    folder = tmp_path_factory.mktemp("hive")
    place(folder, f"{folder_name('k=1/', value)}/a")
    found = hive_files(folder, "read_csv", None)
    assert (found.keys, found.values) == (("k=1/",), ((value,),))


def test_names_are_those_of_spark():
    assert folder_name("a b", "x:y/z%") == "a b=x%3Ay%2Fz%25"
    assert escaped("\n{[^]}\x7f'\"*?#=\\") == "%0A%7B%5B%5E%5D}%7F%27%22%2A%3F%23%3D%5C"
    assert folder_name("a", None) == folder_name("a", "") == f"a={NULL_FOLDER}"
    assert folder_name("_a", ".b") == "_a=.b"
    assert folder_name(".a", "x") == "%2Ea=x"
    with pytest.raises(PlanError, match=f"a is '{NULL_FOLDER}', the name of the folder of null"):
        folder_name("a", NULL_FOLDER)
    with pytest.raises(PlanError, match="more than 255 bytes"):
        folder_name("a", "ä" * 200)
