"""Facts about the places: further words for them, the homes of subjects, and neighbouring places."""

from collections.abc import Mapping
from types import MappingProxyType

from penstock_engines.cinema.prompt.lexicon import by_phrase
from penstock_engines.cinema.script import Particles, Weather
from penstock_engines.cinema.subjects import Habitat

MORE_WORDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "city": ("city skyline", "city street"),
        "skyline": ("city skyline",),
        "buildings": ("city skyline", "city street"),
        "rooftops": ("city skyline",),
        "bridge": ("river valley", "city skyline"),
        "crossroads": ("city street",),
        "alley": ("city street",),
        "alleyway": ("city street",),
        "traffic jam": ("city street", "highway"),
        "market": ("city street",),
        "town": ("city street", "village", "harbour"),
        "town square": ("city street", "village"),
        "hill": ("flower meadow",),
        "hillside": ("flower meadow",),
        "field": ("farm", "flower meadow"),
        "pasture": ("flower meadow", "farm"),
        "sunflower field": ("flower meadow",),
        "lawn": ("flower meadow",),
        "orchard": ("farm", "flower meadow"),
        "vineyard": ("farm",),
        "rice terraces": ("farm",),
        "bamboo": ("jungle",),
        "bamboo forest": ("jungle",),
        "palm tree": ("tropical island", "beach"),
        "palm trees": ("tropical island", "beach"),
        "canal": ("river valley", "city skyline"),
        "pool": ("waterfall", "mountain lake"),
        "swamp": ("jungle", "river valley"),
        "plain": ("savanna",),
        "plains": ("savanna", "flower meadow"),
        "cliff": ("beach", "open sea", "canyon"),
        "bay": ("beach", "harbour"),
        "shore": ("beach",),
        "island": ("tropical island", "beach"),
        "sand": ("beach", "desert"),
        "coastal road": ("highway", "beach"),
        "beneath the waves": ("coral reef",),
        "under the waves": ("coral reef",),
        "below the waves": ("coral reef",),
        "under water": ("coral reef",),
        "under the ocean": ("coral reef",),
        "shipwreck": ("coral reef", "deep sea"),
        "coral": ("coral reef",),
        "mountain": ("snowy mountains",),
        "peak": ("snowy mountains",),
        "snow": ("snowy mountains", "arctic"),
        "ice": ("arctic",),
        "tundra": ("arctic",),
        "igloo": ("arctic",),
        "saturn": ("space",),
        "jupiter": ("space",),
        "earth": ("space",),
        "planet": ("space", "alien planet"),
        "black hole": ("space",),
        "space station": ("space",),
        "asteroid": ("space",),
        "on the moon": ("alien planet",),
        "lunar": ("alien planet",),
        "crater": ("alien planet",),
        "ruins": ("castle",),
        "waterfalls": ("waterfall",),
        "station": ("railway",),
        "tunnel": ("cave", "railway"),
        "ravine": ("canyon",),
        "airport": ("highway",),
        "temple": ("blossom garden", "castle"),
        "room": ("cosy room",),
        "carpet": ("cosy room",),
        "sofa": ("cosy room",),
        "couch": ("cosy room",),
        "bed": ("cosy room",),
        "desk": ("cosy room",),
        "office": ("cosy room",),
        "windowsill": ("cosy room",),
        "window": ("cosy room", "cafe"),
        "table": ("cafe",),
        "bar": ("cafe",),
        "pub": ("cafe",),
        "club": ("concert",),
        "theatre": ("concert",),
        "theater": ("concert",),
        "festival": ("concert",),
        "launch pad": ("desert",),
        "launch": ("desert", "space"),
        "launching": ("desert", "space"),
        "launches": ("desert", "space"),
        "liftoff": ("desert", "space"),
        "lifts off": ("desert", "space"),
        "blasts off": ("desert", "space"),
    }
)
"""Further words, with the places that each may mean, the likeliest first."""
HOMES: Mapping[str, str] = by_phrase(
    {
        "above the clouds": "aeroplane, propeller plane, airship, hot-air balloon",
        "alien planet": "alien",
        "arctic": "penguin, polar bear",
        "beach": "crab, seagull, ball",
        "blossom garden": "butterfly, bee, ladybird, dragonfly, peacock, cherry tree, fountain, statue, rose",
        "cafe": "coffee cup, teapot, cake, pizza, apple, ice cream, chef",
        "castle": "knight, king, princess, dragon, wizard, samurai, ghost, witch, crown",
        "cave": "bat, diamond",
        "city street": "bus, taxi, tram, woman with an umbrella, skateboarder",
        "concert": "musician, dancer, guitar",
        "cosy room": "cat, kitten, mouse, book, candle, clock, gramophone, piano, gift, christmas tree",
        "deep sea": "submarine, octopus, jellyfish",
        "desert": "camel, cactus",
        "farm": "cow, pig, chicken, sheep, tractor, farmer, windmill, pumpkin",
        "forest": "deer, fox, bear, wolf, owl, squirrel, mushroom, monster, tent, campfire, cabin",
        "jungle": "tiger, monkey, parrot, panda, hummingbird, dinosaur",
        "mountain lake": "duck, swan, rowing boat, canoe, flamingo, fisherman",
        "neon city": "robot",
        "open sea": "lighthouse, surfer, dolphin",
        "savanna": "lion, zebra, elephant, giraffe, rhinoceros, leopard, hippopotamus",
        "snowy mountains": "goat, hiker, skier, snowman, sled, santa",
        "tropical island": "palm",
    }
)
"""The places where a subject is at home."""
HABITAT_HOMES: Mapping[Habitat, str] = MappingProxyType(
    {
        Habitat.GROUND: "flower meadow",
        Habitat.FIXED: "flower meadow",
        Habitat.AIR: "flower meadow",
        Habitat.ROAD: "highway",
        Habitat.RAIL: "railway",
        Habitat.WATER: "open sea",
        Habitat.UNDERWATER: "coral reef",
        Habitat.SPACE: "space",
    }
)
NEARBY: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "open sea": ("beach", "harbour", "coral reef"),
        "beach": ("open sea", "coral reef"),
        "tropical island": ("beach", "coral reef"),
        "harbour": ("beach", "coral reef"),
        "mountain lake": ("flower meadow", "coral reef"),
        "river valley": ("flower meadow", "coral reef"),
        "waterfall": ("jungle", "coral reef"),
        "city skyline": ("city street",),
        "city street": ("city skyline",),
        "neon city": ("city skyline",),
        "coral reef": ("open sea", "beach"),
        "deep sea": ("open sea", "beach"),
        "arctic": ("open sea", "deep sea"),
        "forest": ("river valley",),
        "jungle": ("river valley", "waterfall"),
        "snowy mountains": ("mountain lake",),
        "space": ("alien planet",),
        "alien planet": ("space",),
        "above the clouds": ("flower meadow", "open sea", "highway"),
    }
)
"""Alternatives, best first, for a named place where the cast cannot be."""
SUGGESTED: Mapping[Particles | Weather, str] = MappingProxyType(
    {
        Particles.FIREFLIES: "forest",
        Particles.PETALS: "flower meadow",
        Particles.LEAVES: "autumn forest",
        Particles.EMBERS: "volcano",
        Particles.BUBBLES: "coral reef",
        Particles.LANTERNS: "mountain lake",
        Particles.FIREWORKS: "city skyline",
        Weather.RAIN: "city street",
        Weather.STORM: "open sea",
        Weather.SNOW: "snowy mountains",
        Weather.FOG: "misty pines",
        Weather.WIND: "flower meadow",
        Weather.CLOUDS: "above the clouds",
    }
)
"""The places that show particles or a weather best."""
REFINED: Mapping[tuple[str, Particles | Weather], str] = MappingProxyType(
    {("forest", Particles.LEAVES): "autumn forest", ("forest", Weather.FOG): "misty pines"}
)
"""The variant of a place in a season or weather."""
FREE = "abstract"
WEAK = frozenset(
    {
        "tree",
        "trees",
        "grass",
        "sand",
        "wave",
        "waves",
        "sky",
        "clouds",
        "cloud",
        "wildflowers",
        "earth",
        "table",
        "bed",
        "window",
        "alley",
        "alleyway",
    }
    | {
        "palm tree",
        "palm trees",
        "traffic",
        "driving",
        "harvest",
        "bridge",
        "buildings",
        "coral",
        "bamboo",
        "ice",
        "pool",
    }
    | {"launch", "launching", "launches", "liftoff", "lifts off", "blasts off"}
)
"""Words for things found at many places. Another named place counts more."""
