"""Prompts and what they are understood to mean."""

import hashlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock_engines.cinema.places import PLACES
from penstock_engines.cinema.prompt import atlas, roles
from penstock_engines.cinema.prompt.cast_search import open_cast
from penstock_engines.cinema.prompt.kinship import YOUNG_PREFIX
from penstock_engines.cinema.prompt.reading import FREELY, WORDS_ONLY, read_prompt
from penstock_engines.cinema.script import Camera, Particles, Script, Time, Weather
from penstock_engines.cinema.subjects import SUBJECTS

LABELLED = [
    [cell.strip() for cell in line.split(" | ")]
    for line in (Path(__file__).parent / "cinema_prompts.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
]
NOWHERE = Path("no such folder")


@pytest.fixture
def read(cast_weights: Path):
    def read(prompt: str) -> Script:
        return read_prompt(prompt, people=True, weights=cast_weights).script

    return read


def by_words(prompt: str) -> Script:
    """What the words alone say."""
    return read_prompt(prompt, people=True, weights=NOWHERE).script


def cast_of(script: Script) -> list[tuple[str, int]]:
    return [(role.subject, role.count) for role in script.cast]


@pytest.mark.parametrize(
    "row",
    [pytest.param(row, id=row[0], marks=pytest.mark.long if number % 2 else ()) for number, row in enumerate(LABELLED)],
)
def test_a_labelled_prompt(read, row: list[str]):
    prompt, place, subjects, time, weather, camera = row
    script = read(prompt)
    said = {"place": place, "time": time, "weather": weather, "camera": camera}
    wrong = {
        kind: getattr(script, kind)
        for kind, wanted in said.items()
        if wanted != "-" and getattr(script, kind) not in wanted.split("|")
    }
    assert wrong == {}
    if subjects != "-":
        wanted = [] if subjects == "none" else [subject.split("|") for subject in subjects.split(",")]
        assert len(script.cast) == len(wanted)
        assert all(any(role.subject in choice for role in script.cast) for choice in wanted), script.cast


@pytest.mark.parametrize(
    ("prompt", "place", "subject"),
    [
        ("A sailboat", "open sea", "sailboat"),
        ("a rocket", "space", "rocket"),
        ("fish", "coral reef", "fish"),
        ("a bird", "flower meadow", "bird"),
        ("a train", "railway", "train"),
        ("a car", "highway", "car"),
        ("a sailboat in the desert", "open sea", "sailboat"),
        ("a shark in the desert", "coral reef", "shark"),
        ("a car on the ocean", "beach", "car"),
    ],
)
def test_everyone_is_somewhere_they_can_be(prompt: str, place: str, subject: str):
    script = by_words(prompt)
    assert (script.place, [role.subject for role in script.cast]) == (place, [subject])


@pytest.mark.parametrize(
    ("prompt", "cast"),
    [
        ("three white swans on a lake", [("swan", 3)]),
        ("a flock of birds over a city", [("bird", 7)]),
        ("a school of fish", [("fish", 8)]),
        ("horses on a beach", [("horse", 3)]),
        ("a fish", [("fish", 1)]),
        ("wolves in the forest", [("wolf", 3)]),
        ("a pair of dogs and a cat", [("dog", 2), ("cat", 1)]),
        ("a dog chases a cat. The dog barks.", [("dog", 1), ("cat", 1)]),
        ("a man riding a horse through the desert", [("horse rider", 1)]),
        ("a duck with its mother", [("duck", 1)]),
        ("clouds like sheep over a meadow", []),
        ("trees in a forest", []),
        ("a castle at night", []),
        ("a street without cars or people", []),
        ("a cat, a dog, a fox and a horse in a meadow", [("cat", 1), ("dog", 1), ("fox", 1), ("horse", 1)]),
    ],
)
def test_who_and_how_many(prompt: str, cast: list[tuple[str, int]]):
    assert cast_of(by_words(prompt)) == cast


def test_colours_belong_to_the_noun_they_stand_before():
    script = by_words("a green car and two blue birds under a purple sky")
    (car, birds), tint = script.cast, script.tint
    assert car.colour != birds.colour
    assert car.colour is not None
    assert car.colour[1] == max(car.colour)
    assert birds.colour is not None
    assert birds.colour[2] == max(birds.colour)
    assert tint is not None
    assert tint[2] == max(tint)
    assert by_words("the blue ocean").tint is None
    assert by_words("a red fox in the woods").cast[0].colour is None, "as foxes are"
    assert len(by_words("a red bird and a blue bird").cast) == 2


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("golden hour", {"time": Time.SUNSET}),
        ("a moonlit lake", {"time": Time.NIGHT}),
        ("a blizzard", {"weather": Weather.SNOW, "place": "snowy mountains"}),
        ("a forest in a drizzle, dolly in", {"weather": Weather.RAIN, "camera": Camera.PUSH_IN}),
        ("zoom out from a beach", {"camera": Camera.PULL_OUT}),
        ("aerial view of a beach", {"camera": Camera.RISE}),
        ("aerial view of a beach, camera slowly pans left", {"camera": Camera.PAN_LEFT, "pace": 0.7}),
        ("tracking shot on a beach", {"camera": Camera.PAN_RIGHT}),
        ("a beach in slow motion", {"pace": 0.5}),
        ("timelapse of a city", {"pace": 2.0}),
        ("a beach without rain", {"weather": Weather.CLEAR}),
        ("a forest with fireflies", {"particles": Particles.FIREFLIES, "time": Time.NIGHT}),
        ("a forest with falling leaves", {"particles": Particles.LEAVES, "place": "autumn forest"}),
        ("fireworks", {"particles": Particles.FIREWORKS, "place": "city skyline", "time": Time.NIGHT}),
        ("a cat in the rain", {"weather": Weather.RAIN, "place": "city street"}),
        ("a cat in a storm", {"weather": Weather.STORM, "place": "flower meadow"}),
        ("a cat", {"weather": Weather.CLEAR, "place": "cosy room"}),
        ("a beach after the rain", {"weather": Weather.CLEAR}),
        ("snow-capped mountains", {"weather": Weather.CLEAR}),
    ],
)
def test_when_and_how(prompt: str, expected: dict[str, object]):
    script = by_words(prompt)
    assert {name: getattr(script, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("prompt", "place"),
    [
        ("Flakes drift down over silent summits", "snowy mountains"),
        ("Foam rolls in at low tide over shells and pebbles", "beach"),
        ("A voyage among distant suns and their worlds", "space|alien planet"),
        ("Rows of ripe corn as far as one sees", "farm"),
    ],
)
def test_a_place_that_no_word_names_is_found_by_meaning(read, prompt: str, place: str):
    assert read(prompt).place in place.split("|")  # 8-bit weights round variously: what is near enough is right


def test_a_subject_that_no_word_names_is_found_by_meaning(read):
    assert cast_of(read("A rocketship")) == [("rocket", 1)]
    assert cast_of(read("An evening at the ballet")) == [("dancer", 1)]


@pytest.mark.parametrize("prompt", ["", ".", "x", "?!… --", "qwrt zxcv bnmp", "😀😀", "the " * 1000])
def test_what_means_nothing_is_drawn_freely(weights: Path, prompt: str):
    reading = read_prompt(prompt, people=True, weights=weights)
    assert reading.script.place == "abstract"
    assert reading.script.cast == ()
    assert FREELY in reading.warnings


def test_emoji_are_read():
    script = by_words("🐱🌊")
    assert (script.place, cast_of(script)) == ("open sea", [("cat", 1)])


def test_without_people_nobody_is_seen(weights: Path):
    reading = read_prompt("A woman walks her dog on the beach", people=False, weights=weights)
    assert cast_of(reading.script) == [("dog", 1)]
    assert reading.warnings == ("The woman was left out: personGeneration is dont_allow.",)
    assert cast_of(read_prompt("A woman on the beach", people=True, weights=weights).script) == [("woman", 1)]


def test_without_weights_the_words_are_read():
    reading = read_prompt("A gleaming fox in a quaint forest", people=True, weights=NOWHERE)
    assert (reading.script.place, cast_of(reading.script)) == ("forest", [("fox", 1)])
    assert reading.warnings == ()
    assert WORDS_ONLY in read_prompt("Gleaming quaintness", people=True, weights=NOWHERE).warnings


def test_the_seed_is_of_the_prompt():
    reading = read_prompt("a fox", people=True, weights=NOWHERE)
    assert reading.seed == reading.script.seed == int(hashlib.sha256(b"a fox").hexdigest()[:8], 16) >> 1
    assert reading.seed < 2**31


@settings(max_examples=40, deadline=None)
@given(st.text(st.characters(), max_size=200) | st.lists(st.sampled_from(sorted(roles.SUBJECT_OF))).map(" ".join))
def test_any_text_at_all_makes_a_script_the_stage_can_play(prompt: str):
    script = by_words(prompt)
    assert script.place in PLACES
    assert len(script.cast) <= 3
    assert all(role.subject.removeprefix(YOUNG_PREFIX) in SUBJECTS and role.count >= 1 for role in script.cast)
    assert by_words(prompt) == script


def test_the_atlas_knows_only_what_there_is(cast_weights: Path):
    cast = open_cast(cast_weights)
    assert cast is not None
    assert {*atlas.HOMES, *atlas.HAS} <= {*SUBJECTS, *cast.names.name_of.values()}
    assert {*atlas.SHOWS, *atlas.KIND_HOMES.values()} <= set(PLACES)
    assert set(roles.MORE_WORDS.values()) | roles.ANYONE | roles.RIDERS | set(roles.NATURAL_COLOURS) <= set(SUBJECTS)
    places = {*atlas.HOMES.values(), *atlas.HABITAT_HOMES.values(), *atlas.SUGGESTED.values(), *atlas.REFINED.values()}
    places |= {place for nearby in (*atlas.NEARBY.values(), *atlas.MORE_WORDS.values()) for place in nearby}
    assert places | set(atlas.NEARBY) | {atlas.FREE} <= set(PLACES)
