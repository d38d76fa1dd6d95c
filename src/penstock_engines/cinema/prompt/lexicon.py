"""The words of a prompt for time, weather, camera, number and colour."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TypeVar

from penstock_engines.cinema.paint.brush import Colour
from penstock_engines.cinema.script import Camera, Particles, Time, Weather

Value = TypeVar("Value")


def by_phrase(table: Mapping[Value, str]) -> Mapping[str, Value]:
    """Return the meaning of every phrase of a table of comma-separated phrases."""
    return MappingProxyType({phrase.strip(): value for value, text in table.items() for phrase in text.split(",")})


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _verbs(stems: Iterable[str], *ends: str) -> str:
    """Return every form of every verb with every ending: zoom in, zooms in, zooming in, zoomed in."""
    forms = (form for stem in stems for form in _forms(stem))
    return ", ".join(f"{form} {end}".strip() for form in forms for end in ends)


def _forms(stem: str) -> tuple[str, ...]:
    """Return the forms of a verb. A final capital letter is doubled: paN, panning."""
    base = stem.lower()
    root = base.removesuffix("e") if stem == base else base + base[-1]
    many = base[:-1] + "ies" if base.endswith("y") else base + "s"
    return base, many, root + "ing", root + "ed"


MOVES = (
    *("paN", "zoom", "dolly", "tilt", "crane", "jib", "boom", "camera move", "camera slide", "camera sweep"),
    *("camera track", "camera push", "camera pull", "camera glide", "camera fly", "camera drift", "camera travel"),
)
"""Movements of a camera. Verbs that others use too count only after the word "camera"."""

TIMES: Mapping[str, Time] = by_phrase(
    {
        Time.DAWN: "dawn, sunrise, sun rise, sun rises, sun rising, rising sun, daybreak, first light, morning, "
        "early morning, morning light, break of day, crack of dawn, sun comes up, sun coming up, before breakfast",
        Time.DAY: "day, daytime, daylight, noon, midday, afternoon, sunny, sunlit, sunshine, bright day, "
        "broad daylight, high noon, summer day, sunlight, sun drenched, sun kissed",
        Time.SUNSET: "sunset, sundown, sun set, sun sets, sun setting, setting sun, golden hour, golden light, "
        "late afternoon, magic hour, sun goes down, sun going down, low sun, sinking sun, sun sinks, end of the day, "
        "end of day, last light, sunsets, amber light",
        Time.DUSK: "dusk, twilight, evening, blue hour, nightfall, gloaming, at day's end, after sunset, crepuscular",
        Time.NIGHT: "night, nighttime, night time, midnight, moonlit, moonlight, moonrise, moon, full moon, starry, "
        "starlit, starlight, stars, nocturnal, nights, tonight, after dark, in the dark, milky way, aurora, "
        "northern lights, aurora borealis, constellations, crescent moon, late at night, night sky, starry sky, "
        "shooting star, shooting stars, meteor shower, neon, neon lights, neon lit, city lights, stargazing, "
        "streetlights, street lights, lamplight, candlelight, bedtime",
    }
)
WEATHERS: Mapping[str, Weather] = by_phrase(
    {
        Weather.CLEAR: "clear sky, clear skies, cloudless, sunny, fair weather, not a cloud, blue sky, blue skies, "
        "bright day, sunshine, clear night, clear day, clear weather, good weather, no clouds",
        Weather.CLOUDS: "cloudy, overcast, clouds, cloud, gray sky, grey sky, grey skies, gray skies, dramatic sky, "
        "fluffy clouds, clouded, sullen sky, leaden sky",
        Weather.RAIN: "rain, rains, raining, rainy, drizzle, drizzling, drizzly, downpour, shower, showers, pouring, "
        "raindrops, wet street, rainfall, rain soaked, monsoon, puddles, umbrella, umbrellas, cloudburst, wet streets",
        Weather.STORM: "storm, stormy, storms, thunderstorm, thunderstorms, lightning, thunder, tempest, hurricane, "
        "tempestuous, storm clouds, storm cloud, typhoon, squall, raging sea, rough seas, stormy seas, thundering",
        Weather.SNOW: "snow, snowy, snowing, snows, snowfall, blizzard, snowflakes, snowflake, snowstorm, flurries, "
        "sleet, snow storm, falling snow, snow covered, snowbound, powder snow, wintry, winter",
        Weather.FOG: "fog, foggy, mist, misty, haze, hazy, smog, foggily, fogbound, murky, murk, mists, in the clouds",
        Weather.WIND: "wind, windy, winds, breeze, breezy, gust, gusts, gusty, gale, windswept, blustery, sandstorm, "
        "wind swept, sand storm, dust storm, tornado, blowing wind",
    }
)
CAMERAS: Mapping[str, Camera] = by_phrase(
    {
        Camera.STILL: "static shot, static camera, still shot, fixed camera, locked off, locked camera, tripod, "
        "stationary camera, still camera, camera is still, camera does not move, camera stays still, fixed shot, "
        "camera holds still, no camera movement, steady shot, locked shot, camera remains still, motionless camera",
        Camera.PAN_LEFT: _verbs(MOVES, "left", "to the left", "leftward", "leftwards")
        + ", right to left, from right to left, leftward pan, left pan, pan from right",
        Camera.PAN_RIGHT: _verbs(MOVES, "right", "to the right", "rightward", "rightwards", "across", "along", "over")
        + ", left to right, from left to right, rightward pan, pan shot, panning shot, panning, pan, pans, "
        "tracking shot, tracking, side scrolling, camera follows, following shot, camera tracks, panorama, panoramic, "
        "lateral shot, trucking shot, sweeping shot, camera following, following camera, dolly along, tracks alongside",
        Camera.PUSH_IN: _verbs(MOVES, "in", "into", "closer", "forward", "toward", "towards", "through")
        + ", push in, pushes in, pushing in, close up, closeup, zoom shot, push in shot, dolly shot, fly through, "
        "flythrough, flying forward, forward tracking, pov, first person, camera approaches, dolly zoom, crash zoom, "
        "zoom, zooming, zooms, towards the camera, slow push",
        Camera.PULL_OUT: _verbs(MOVES, "out", "back", "away", "backward", "backwards")
        + ", pull back, pulls back, pulling back, pullback, reveal shot, wide reveal, camera retreats, zoom out shot, "
        "camera backs away, pull out shot, pull away, slow reveal",
        Camera.RISE: _verbs(MOVES, "up", "upward", "upwards")
        + ", crane shot, camera rises, rising shot, camera rising, camera lifts, camera ascends, ascending shot, "
        "rising camera, drone rises, drone lifts, camera climbs, ascending camera, low angle, pedestal up",
        Camera.DESCEND: _verbs(MOVES, "down", "downward", "downwards")
        + ", camera descends, descending shot, camera lowers, camera drops, camera sinks, descending camera, "
        "camera descending, drone descends, high angle, pedestal down, camera dives, camera lowering",
    }
)
"""Phrases for the camera's movement."""
VIEWPOINTS: Mapping[str, Camera] = by_phrase(
    {
        Camera.RISE: "aerial, aerial shot, aerial view, drone, drone shot, drone footage, bird's eye view, flyover, "
        "fly over, from above, overhead, from the air, bird's eye, helicopter shot, birds eye view, drone view",
        Camera.PULL_OUT: "establishing shot, wide shot, wide angle, extreme wide shot, epic wide shot",
        Camera.PUSH_IN: "macro, portrait shot, extreme close up, macro shot, medium shot, through the window",
    }
)
"""Phrases for the camera's position, used where none names its movement."""
PARTICLES: Mapping[str, Particles] = by_phrase(
    {
        Particles.FIREFLIES: "fireflies, firefly, glowworms, glow worms, lightning bugs, glowing insects, "
        "fairy lights, magical lights, glowing particles, fairy dust, magic dust, "
        "sparkles, pixie dust, glowing spores",
        Particles.PETALS: "petals, petal, cherry blossom, cherry blossoms, blossoms, sakura, rose petals, "
        "falling petals, blossom, flower petals",
        Particles.LEAVES: "falling leaves, autumn leaves, fallen leaves, leaves falling, leaves fall, autumn, "
        "leaves drift, leaves blow, leaves swirl, leaves blowing, swirling leaves, drifting leaves, golden leaves, "
        "leaves drifting, "
        "fall foliage, leaves swirling, autumnal, red leaves, blowing leaves, leaves tumble, leaves fluttering",
        Particles.EMBERS: "embers, sparks, ash, ashes, cinders, glowing embers, ember, spark, lava, volcano, eruption, "
        "erupting, erupts, inferno, wildfire, flames",
        Particles.BUBBLES: "bubbles, soap bubbles, bubble",
        Particles.DUST: "dust, dusty, pollen, dust motes, dandelion seeds, floating dust, sandstorm, sand storm, "
        "spores, dust storm, motes, dust particles, dandelion fluff",
        Particles.CONFETTI: "confetti, streamers, party, parade, ticker tape",
        Particles.LANTERNS: "lanterns, sky lanterns, paper lanterns, floating lanterns, lantern festival, sky lantern, "
        "paper lantern, lantern",
        Particles.FIREWORKS: "fireworks, firework, firework display, new year's eve, pyrotechnics, fireworks display",
    }
)
PARTICLES_TIMES: Mapping[Particles, Time] = MappingProxyType(
    {
        Particles.FIREFLIES: Time.NIGHT,
        Particles.LANTERNS: Time.NIGHT,
        Particles.FIREWORKS: Time.NIGHT,
        Particles.EMBERS: Time.DUSK,
    }
)
"""The best time to see them, if the prompt names no time."""
PACES: Mapping[str, float] = by_phrase(
    {
        0.5: "slow motion, slowmo, slow mo, super slow, ultra slow motion, in slow motion, very slowly, slowed down",
        0.7: "slowly, slow, gently, gentle, calm, calmly, peaceful, peacefully, serene, tranquil, lazily, leisurely, "
        "drifting, drifts, dreamy, meditative, relaxing, languid, unhurried",
        1.5: "quickly, quick, rushing, galloping, gallops, sprinting, sprints, running, runs, energetic, dashing, "
        "dashes, swift, swiftly, hurrying, busy, bustling, chasing, chases, action",
        2.0: "fast, timelapse, time lapse, hyperlapse, speeding, speeds, racing, races, fast forward, fast motion, "
        "sped up, high speed, full speed, very fast, frantic, hectic, zooming past, blazing fast, time lapsed",
    }
)
COUNTS: Mapping[str, int] = by_phrase(
    {
        1: "one, single, lone, lonely, solitary, 1",
        2: "two, pair of, couple of, 2, twin, both",
        3: "three, 3, trio of, few, some",
        4: "four, 4, several",
        5: "five, 5, group of, pack of, herd of, family of, bunch of, pride of, gang of, handful of, fleet of, team of",
        6: "six, 6, half a dozen, many, lots of, row of, line of, convoy of, crowd of, caravan of",
        7: "seven, 7, flock of, flocks of, colony of, herds of",
        8: "eight, 8, school of, schools of, shoal of, countless, dozens of, hundreds of, thousands of, swarm of, "
        "dozen, nine, 9, ten, 10, eleven, twelve, 12, cloud of, murmuration of, kaleidoscope of, army of, armada of",
    }
)
COLOURS: Mapping[str, Colour] = by_phrase(
    {
        (206, 48, 44): "red, scarlet, ruby, cherry red, bright red",
        (150, 28, 48): "crimson, maroon, burgundy, dark red",
        (238, 128, 40): "orange, tangerine, apricot",
        (246, 205, 62): "yellow, lemon, canary",
        (214, 166, 60): "gold, golden, amber, honey",
        (70, 160, 78): "green, lime, grassy",
        (46, 150, 110): "emerald, jade, dark green",
        (48, 172, 172): "teal, turquoise, cyan, aqua",
        (58, 116, 206): "blue, azure, sapphire, cobalt",
        (34, 50, 120): "navy, navy blue, dark blue, indigo, midnight blue",
        (130, 190, 240): "light blue, sky blue, pale blue, baby blue",
        (132, 74, 190): "purple, violet, amethyst",
        (182, 150, 220): "lavender, lilac, mauve, light purple",
        (240, 130, 176): "pink, magenta, fuchsia, rose coloured, hot pink, salmon pink",
        (246, 178, 150): "peach, salmon, coral coloured, rose gold, copper",
        (128, 84, 52): "brown, chestnut, chocolate, tan, ginger brown",
        (222, 132, 62): "ginger, rusty",
        (238, 226, 198): "cream, beige, ivory, blonde",
        (244, 244, 246): "white, snow white, pale white",
        (46, 44, 52): "black, jet black, dark black, ebony",
        (140, 144, 152): "gray, grey, silver, ash grey, silvery",
    }
)
NATURAL = _words("green blue white grey gray golden gold brown yellow black azure")
"""Colours that a landscape has anyway: "the blue sea" asks for nothing."""
TINTED = _words(
    "sky skies light lights lighting glow haze mist fog clouds sunset sunrise dusk dawn twilight hue hues tone tones "
    "palette atmosphere nebula aurora world scene background horizon air ambience tint colour color colours colors"
)
"""Words for the whole scene, whose colour tints the clip."""
NEGATIONS = _words("no not without never none zero nobody minus lacking excluding neither nor")
PREPOSITIONS = _words(
    "in on at over above across through under underneath beneath below along by near beside behind inside into onto "
    "around past toward towards between among amid amidst against atop off outside beyond within upon from to"
)
DIRECTIONS = _words("into onto past toward towards off beyond from to")
"""Prepositions of direction. Their place need not be where the subject is."""
STOPS = _words(". , ; : ! ? ( ) but with and while as then") | PREPOSITIONS
"""Words that end a noun phrase, so that nothing before them describes a later noun."""
MASKED = (
    *("snow capped", "snow white", "star fish", "rain coat", "wind turbine", "moon boots", "day dream", "right next"),
    *("sun rays", "rays of light", "rays of sunlight", "light rays", "god rays", "rays of the sun", "ray of light"),
    *("sun ray", "sunny side", "rain barrel", "snow globe", "day care", "night stand", "night gown", "fire fly"),
    *("after the rain", "after rain", "after the storm", "after a storm", "after the snow"),
    *("depth of field", "shallow depth of field", "film frame", "in frame"),
    *("still life", "right now", "left behind", "cloud nine", "snow cone", "sun glasses", "sun hat", "sun flower"),
)
"""Phrases whose words have another meaning alone."""
SMALL_WORDS = _words(
    "the and for with its his her their this that these those are was were has have had can will would should from "
    "into onto over under above below very much more most some any all each every other another such own same than "
    "too out off then once here there when where why how who whom which what while because until about against "
    "between during before after again further just now they them she him you your our ours mine video clip shot "
    "scene footage film movie cinematic realistic photorealistic detailed beautiful stunning epic high quality "
    "resolution ultra hdr render rendered style look looking camera view animation animated make create generate "
    "show showing shows featuring please want need background foreground lens lighting dramatic"
)
"""Words that name neither subject nor place."""
