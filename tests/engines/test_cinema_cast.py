"""The cast of a clip: nouns of a prompt that nothing drawn by hand stands for, and the list of what is not drawn."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from penstock_engines.cast import album, wordbook
from penstock_engines.cinema.prompt import cast_search
from penstock_engines.cinema.prompt.nearness.meaning import PROTOTYPES
from penstock_engines.cinema.prompt.reading import Reading, read_prompt
from penstock_engines.cinema.script import Script, Time, Weather
from penstock_engines.cinema.stage import Stage
from penstock_engines.cinema.subjects import SUBJECTS, Habitat, Motion, draw_step
from penstock_engines.cinema.video_engine import VideoWish, make_video

MODEL = ("minilm.onnx", "minilm-tokenizer.json")


@pytest.fixture
def read(cast_weights: Path):
    def read(prompt: str, *, people: bool = True) -> Reading:
        return read_prompt(prompt, people=people, weights=cast_weights)

    return read


@pytest.fixture
def without_cast(cast_weights: Path, tmp_path: Path) -> Path:
    """Weights of the language model alone."""
    link_weights(cast_weights, tmp_path, *MODEL)
    return tmp_path


def link_weights(weights: Path, folder: Path, *names: str) -> None:
    """Put files into a folder, with the vectors of phrases, which take a second to compute."""
    kept = (PROTOTYPES,) if (weights / PROTOTYPES).is_file() else ()
    for name in (*names, *kept):
        (folder / name).symlink_to(weights / name)


def drawn(reading: Reading) -> dict[str, int]:
    return {role.subject: role.count for role in reading.script.cast}


def show(script: Script, index: int = 20) -> NDArray[np.uint8]:
    return Stage(script, 320, 180, 48, 24).frame(index)


# -- nouns become sprites


@pytest.mark.parametrize(
    ("prompt", "cast"),
    [
        ("A croissant and two cupcakes on a plate", {"croissant": 1, "cupcake": 2}),
        ("Skunks in a garden", {"skunk": 3}),
        ("a fire engine in the city", {"fire engine": 1}),
        ("a policeman and a nurse", {"police officer": 1, "health worker": 1}),
        ("a teddy bear", {"teddy bear": 1}),
        ("a lemon and an orange", {"lemon": 1, "tangerine": 1}),
        ("a violin on a stage", {"violin": 1}),
        ("chess on the beach", {"chess pawn": 1}),
        ("a rainbow and a bed in the desert", {"rainbow": 1, "bed": 1}),
    ],
)
def test_a_noun_that_nobody_draws_by_hand_is_of_the_cast(read, prompt: str, cast: dict[str, int]):
    reading = read(prompt)
    assert cast.items() <= drawn(reading).items()
    assert not any(word in " ".join(reading.warnings) for word in cast)


@pytest.mark.parametrize("prompt", ["a fox", "a sailboat", "a car", "an airplane", "a cow", "a house"])
def test_what_is_drawn_by_hand_stays_so(read, prompt: str):
    assert [role.sprite for role in read(prompt).script.cast] == [None]


@pytest.mark.parametrize(
    ("prompt", "verb"),
    [("A hedgehog pushes a shopping cart", "package"), ("Two men watch the sea", "watch"), ("Cats fly", "fly")],
)
def test_a_verb_is_no_thing(read, prompt: str, verb: str):
    assert verb not in drawn(read(prompt))


@pytest.mark.parametrize(
    ("prompt", "cast", "place", "time", "weather"),
    [
        (
            "Ein Dachs und ein Igel im Garten bei Sonnenuntergang",
            {"badger", "hedgehog"},
            "blossom garden",
            "sunset",
            None,
        ),
        ("Eine Feuerwehr fährt nachts durch die Stadt", {"fire engine"}, "city street", "night", None),
        ("Un raton laveur mange du fromage sur la plage", {"raccoon", "cheese wedge"}, "beach", None, None),
        ("Un mapache come un taco bajo la lluvia", {"raccoon", "taco"}, None, None, "rain"),
        ("雪の山で狐と梟が月を見ている", {"fox", "owl"}, "snowy mountains", "night", "snow"),
        ("Um macaco come uma banana na floresta", {"monkey", "banana"}, "forest", None, None),
        ("En räv och en uggla dricker kaffe i regnet", {"fox", "owl"}, None, None, "rain"),
        ("고양이와 강아지", {"cat", "dog"}, None, None, None),
    ],
)
def test_other_languages(read, prompt: str, cast: set[str], place: str | None, time: str | None, weather: str | None):
    script = read(prompt).script
    assert cast <= {role.subject for role in script.cast}
    assert place in {None, script.place}
    assert time in {None, script.time}
    assert weather in {None, script.weather}


def test_a_colour_after_a_french_noun_is_that_nouns(read):
    roles = read("Une voiture rouge et un camion de pompier bleu").script.cast
    assert [max(range(3), key=role.colour.__getitem__) for role in roles if role.colour] == [0, 2]


def test_numbers_of_another_language_count(read):
    assert drawn(read("Drei Dachse auf einer Wiese")) == {"badger": 3}


# -- what is not drawn


@pytest.mark.parametrize(
    ("prompt", "listed"),
    [
        ("Two firefighters climb the stairs of a house", "Not drawn: stairs (nearest: ladder)."),
        ("a fox in a forest", None),
        ("a meadow without a scalpel", None),
        ("An alarmingly quick fox jumps over the lazy dog", None),
        ("a shark in the desert", "Not drawn: desert."),
        ("Ein Fuchs und ein Quastenflosser", "Nicht gezeichnet: Quastenflosser."),
        ("Un renard et un chalumeau", "Non dessiné : chalumeau."),
        ("Un zorro y un soplete", "No dibujado: soplete."),
        ("狐と旋盤", "描かれていないもの\uff1a旋盤。"),
    ],
)
def test_what_is_not_drawn_is_listed_in_the_prompts_language(read, prompt: str, listed: str | None):
    assert read(prompt).warnings == ((listed,) if listed else ())


@pytest.mark.parametrize(
    ("prompt", "nouns"),
    [
        ("A plumber repairs a sink while his parrot reads a newspaper", "plumber sink parrot newspaper"),
        ("The mayor cuts a ribbon in front of the new hospital", "mayor ribbon hospital"),
        ("Beavers build a dam across a quiet stream", "beavers dam stream"),
        ("A cat, a dog, a fox, a cow, a pig, a horse and a duck", "cat dog fox cow pig horse duck"),
        ("Grapes and a bottle on a picnic blanket", "grapes bottle blanket"),
    ],
)
def test_every_noun_is_drawn_or_listed(read, prompt: str, nouns: str):
    reading = read(prompt)
    listed = " ".join(reading.warnings)
    players = [role.player for role in reading.script.cast]
    names = {word for player in players for word in (player.name, *player.words)}
    places = {"stream": "river valley"}
    missing = [
        noun
        for noun in nouns.split()
        if not (noun in names or noun in listed or places.get(noun) == reading.script.place)
    ]
    assert missing == []


def test_people_of_the_cast_are_people(read):
    reading = read("A judge and a trumpet", people=False)
    assert drawn(reading) == {"trumpet": 1}
    assert reading.warnings == ("The judge was left out: personGeneration is dont_allow.",)


def test_without_the_cast_its_nouns_are_only_listed(without_cast: Path):
    reading = read_prompt("A fox and a croissant", people=True, weights=without_cast)
    assert drawn(reading) == {"fox": 1}
    assert reading.warnings[0].startswith("Not drawn: croissant")
    german = read_prompt("Ein Dachs am Strand", people=True, weights=without_cast)
    assert (german.script.place, german.warnings) == ("beach", ("Nicht gezeichnet: Dachs.",))


@pytest.mark.parametrize("name", ["cast-pictures.zip", "cast-words.zip", "cast-groups.json"])
def test_a_broken_cast_is_none(cast_weights: Path, tmp_path: Path, name: str):
    link_weights(cast_weights, tmp_path, *MODEL, album.PICTURES, album.GROUPS, wordbook.WORDS)
    (tmp_path / name).unlink()
    (tmp_path / name).write_bytes(b"nothing")
    assert drawn(read_prompt("A fox and a croissant", people=True, weights=tmp_path)) == {"fox": 1}


def test_a_film_says_what_it_does_not_show(tmp_path: Path, cast_weights: Path):
    wish = VideoWish(prompt="a croissant and a scalpel", width=160, height=90, seconds=1, lossless=False, people=True)
    warnings = make_video(wish, tmp_path, cast_weights, lambda _: None).warnings
    assert len(warnings) == 2
    assert warnings[1].startswith("Not drawn: scalpel")


# -- on the stage


def test_a_sprite_is_seen_and_moves(read):
    script = read("a badger in the desert").script
    empty = read("the desert").script
    assert script.place == empty.place
    (role,) = script.cast
    assert role.player.motion is Motion.WALK
    bare = Stage(Script(place=script.place, seed=script.seed, camera=script.camera), 320, 180, 48, 24)
    seen = [np.abs(show(script, index).astype(int) - bare.frame(index)).sum(axis=2) > 60 for index in (8, 36)]
    assert all(mask.sum() > 300 for mask in seen)
    middles = [np.argwhere(mask)[:, 1].mean() for mask in seen]
    assert abs(middles[0] - middles[1]) > 10, "it stands still"


def test_the_hour_lights_a_sprite(read):
    day, night = (read(f"a croissant in the desert at {hour}").script for hour in ("noon", "night"))
    assert (day.time, night.time) == (Time.DAY, Time.NIGHT)
    assert show(day).mean() > show(night).mean() + 20


def test_a_film_is_alike_every_time(read):
    prompt = "A firefighter and a raccoon in the rain"
    first = show(read(prompt).script)
    for cached in (cast_search.open_cast, album.open_album, wordbook.open_wordbook, draw_step):
        cached.cache_clear()
    reading = read(prompt)
    assert reading.script.weather is Weather.RAIN
    assert np.array_equal(first, show(reading.script))


def test_young_ones_are_small_and_of_their_parents_kind(read):
    roles = read("A humpback whale and her calf in the sea").script.cast
    assert [role.subject for role in roles] == ["whale", "young whale"]
    assert roles[1].player.size < roles[0].player.size
    assert drawn(read("Two baby pandas")) == {"young panda": 2}
    assert drawn(read("Three lion cubs on the savanna")) == {"young lion": 3}
    assert drawn(read("A woman and her baby in a park")) == {"woman": 1, "child": 1}


def test_close_ups_are_close(read):
    near, far = (read(f"{view} a strawberry").script.cast[0] for view in ("close-up of", "wide shot of"))
    assert near.scale > far.scale


def test_things_move_as_the_prompt_says(read):
    assert read("a falling croissant").script.cast[0].player.motion is Motion.FALL
    assert read("a flying pig over a farm").script.cast[0].player.habitat is Habitat.AIR
    assert read("a pig on a farm").script.cast[0].player.habitat is Habitat.GROUND


def test_a_colour_of_the_prompt_colours_a_sprite(read):
    plain, blue = (read(f"a {colour} fire engine").script.cast[0] for colour in ("big", "blue"))
    pictures = [draw_step(role.player, 0, 80, role.colour).picture for role in (plain, blue)]
    shares = [picture[..., 0].sum() / picture[..., 2].sum() for picture in pictures]
    assert shares[1] > shares[0] * 1.3


def test_letters_are_never_mirrored(read):
    assert not read("a hospital").script.cast[0].player.turns
    assert read("an ambulance").script.cast[0].player.turns


def test_every_member_of_the_cast_can_be_drawn(cast_weights: Path):
    cast = cast_search.open_cast(cast_weights)
    assert cast is not None
    symbols = sorted(cast.names.name_of)
    assert len(symbols) > 900
    for symbol in symbols:
        subject = cast.make(symbol, "it", seed=3)
        picture = draw_step(subject, 8, 24, None).picture
        assert picture[..., 3].max() > 140, subject.name
        assert (picture[..., :3].max(axis=2) <= picture[..., 3]).mean() > 0.98, "premultiplied"
        assert subject.name not in SUBJECTS or not subject.turns or subject.draw is not SUBJECTS[subject.name].draw


# -- every noun, and no verb


@pytest.mark.parametrize(
    ("prompt", "listed"),
    [
        ("A fox in a forest, steam rising", "Not drawn: steam."),
        ("A fox on a treadmill belt in a forest", "Not drawn: treadmill belt."),
        ("A fox with a punching bag in a forest", "Not drawn: punching bag."),
        ("A duck with a swan swims across a lake", None),
        ("Foxes and wolves cross a river", None),
        ("A fox is azure in a forest", None),
        ("A fox walks through New Orleans in a forest", "Not drawn: New Orleans."),
        ("A fox reads in a forest, shallow depth of field", None),
        ("A cat on the rug in a cosy room", None),
        ("A kangaroo lifts its tail in a meadow", None),
    ],
)
def test_nouns_are_listed_and_verbs_are_not(read, prompt: str, listed: str | None):
    assert read(prompt).warnings == ((listed,) if listed else ())


@pytest.mark.parametrize(
    ("prompt", "stand_in", "listed"),
    [
        ("A barista in a cafe", "cook", "Not drawn: barista (nearest: cook)."),
        ("A vulture over a desert", "eagle", "Not drawn: vulture (nearest: eagle)."),
        ("A tennis player on a beach", "tennis", "Not drawn: tennis player (nearest: person playing handball)."),
    ],
)
def test_a_stand_in_is_drawn_and_listed(read, prompt: str, stand_in: str, listed: str):
    reading = read(prompt)
    assert stand_in in drawn(reading)
    assert reading.warnings == (listed,)


def test_a_place_that_stands_for_another_is_listed(read):
    reading = read("A fox on a hill")
    assert reading.warnings == (f"Not drawn: hill (nearest: {reading.script.place}).",)


def test_a_name_is_one_noun_in_its_own_spelling(read):
    (listed,) = read("Isaac Newton sits in a garden").warnings
    assert listed == "Not drawn: Isaac Newton."


# -- kin and deeds


@pytest.mark.parametrize(
    ("prompt", "cast"),
    [
        ("A duck with six ducklings on a pond", {"duck": 1, "young duck": 6}),
        ("A kangaroo with a joey", {"kangaroo": 1, "young kangaroo": 1}),
        ("A piglet", {"young pig": 1}),
        ("A whale and a calf", {"whale": 1, "young whale": 1}),
    ],
)
def test_young_animals_are_small_ones(read, prompt: str, cast: dict[str, int]):
    roles = read(prompt).script.cast
    assert {role.subject: role.count for role in roles} == cast
    young = next(role.player for role in roles if role.subject.startswith("young "))
    assert young.size < SUBJECTS[young.name.removeprefix("young ")].size


@pytest.mark.parametrize(
    ("prompt", "cast"),
    [
        ("A woman knits in a garden", {"woman": 1, "yarn": 1}),
        ("A mechanic repairs a car", {"mechanic": 1, "wrench": 1, "car": 1}),
        ("A painting on a beach", {"framed picture": 1}),
    ],
)
def test_a_deed_is_seen_by_its_tool(read, prompt: str, cast: dict[str, int]):
    assert drawn(read(prompt)) == cast


# -- languages with endings and vowel signs


@pytest.mark.parametrize(
    ("prompt", "cast", "place", "warnings"),
    [
        ("एक लड़की बगीचे में पतंग उड़ा रही है", {"girl", "kite"}, "blossom garden", ()),
        ("जंगल में हाथी", {"elephant"}, "forest", ()),
        ("كلب يجري في الصحراء", {"dog"}, "desert", ()),
        ("고양이가 숲에서 잔다", {"cat"}, "forest", ()),
        ("Köpek ormanda yürüyor", {"dog"}, "forest", ()),
        ("Pies w lesie", {"dog"}, "forest", ()),
        ("할머니가 바다에서 쟁기를 판다", {"old woman"}, "open sea", ("그리지 않은 것: 쟁기를.",)),
    ],
)
def test_endings_and_vowel_signs(read, prompt: str, cast: set[str], place: str, warnings: tuple[str, ...]):
    reading = read(prompt)
    assert set(drawn(reading)) == cast
    assert reading.script.place == place
    assert reading.warnings == warnings


# -- on the table


def test_food_alone_is_seen_from_near(read):
    near = read("a croissant").script
    far = read("a croissant in the desert").script
    assert near.place == "table"
    assert count_changed(near) > 1.5 * count_changed(far)


def count_changed(script: Script) -> int:
    """Return the number of pixels that the cast covers."""
    bare = Script(place=script.place, seed=script.seed, camera=script.camera)
    return int((np.abs(show(script).astype(int) - show(bare)).max(axis=2) > 12).sum())


def test_a_storm_has_many_bolts():
    stage = Stage(Script(place="open sea", weather=Weather.STORM), 160, 90, 96, 24)
    sky = [int((stage.frame(index)[:40].min(axis=2) > 190).sum()) for index in range(8, 88, 2)]
    calm = sorted(sky)[len(sky) // 4]
    assert sum(bright > calm + 15 for bright in sky) >= 3


def test_what_a_thing_is_made_of_is_listed(read):
    reading = read("A fox on a stone road")
    assert drawn(reading) == {"fox": 1}
    assert reading.warnings == ("Not drawn: stone (nearest: rock).",)
