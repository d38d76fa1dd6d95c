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
        "windowsill": ("cosy room",),
        "waiting room": ("hall",),
        "garage": ("hall",),
        "courtroom": ("hall",),
        "gallery": ("hall",),
        "greenhouse": ("blossom garden",),
        "river bed": ("river valley",),
        "riverbed": ("river valley",),
        "sea bed": ("coral reef",),
        "market square": ("city street", "village"),
        "tennis court": ("flower meadow",),
        "football pitch": ("flower meadow",),
        "football field": ("flower meadow",),
        "grass": ("flower meadow",),
        "blade of grass": ("flower meadow",),
        "blades of grass": ("flower meadow",),
        "window": ("cosy room", "cafe"),
        "bar": ("cafe",),
        "pub": ("cafe",),
        "club": ("concert",),
        "theatre": ("concert",),
        "theater": ("concert",),
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
        "beach": "crab, seagull",
        "blossom garden": "butterfly, bee, lady beetle, dragonfly, peacock, cherry tree, fountain, statue",
        "cafe": "chef, cook",
        "hall": "health worker, mechanic, teacher, scientist, judge, factory worker, person fencing, people wrestling",
        "table": "coffee cup",
        "castle": "knight, king, princess, dragon, wizard, samurai, ghost, witch, crown",
        "cave": "bat, gem stone",
        "city street": "police officer, firefighter, construction worker, detective, guard, "
        "bus, taxi, tram, woman with an umbrella, skateboarder",
        "concert": "musician, dancer",
        "cosy room": "cat, kitten, mouse, candle, gramophone, piano, wrapped gift, Christmas tree",
        "deep sea": "submarine, octopus, jellyfish",
        "desert": "camel, cactus",
        "farm": "cow, pig, chicken, sheep, tractor, farmer, windmill, jack-o-lantern",
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
LOOSE = frozenset(
    (
        *("bridge", "alley", "alleyway", "market", "market square", "hill", "hillside", "orchard", "vineyard", "canal"),
        *("rice terraces", "pool", "swamp", "cliff", "crossroads", "traffic jam", "tundra", "igloo", "shipwreck"),
        *("black hole", "asteroid", "ruins", "tunnel", "airport", "temple", "launch pad", "ravine"),
        *("waiting room", "garage", "courtroom", "museum"),
        *("gallery", "greenhouse", "tennis court", "football pitch", "football field", "dungeon"),
        *("workshop", "laboratory", "classroom", "office", "gym", "studio", "clinic", "warehouse", "hospital ward"),
        *("desk", "workbench", "library", "palace", "mine", "aquarium", "bar", "pub"),
        *("theatre", "theater", "club", "station", "bakery", "bedroom", "mordor", "niagara", "iguazu"),
        *("bamboo", "bamboo forest", "tokyo", "new york", "manhattan", "maldives", "hawaii"),
        *("saturn", "jupiter", "earth", "planet", "mariana trench", "blade runner", "heaven", "sunflower field"),
    )
)
"""Words for places whose scene is only near. They are listed, with the place that stands for them."""
SHOWS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        place: frozenset(text.split())
        for place, text in {
            "cosy room": "window curtain fireplace fire armchair rug carpet bookshelf shelf candle wall floor",
            "cafe": "window lamp shelf jar table vase flower counter floor wall cup",
            "table": "window wall table",
            "hall": "window wall floor lamp bench",
            "concert": "curtain spotlight speaker audience crowd stage floor light",
            "city street": "building house shop lamp tree pavement sidewalk awning window street road",
            "highway": "road mountain tree asphalt",
            "village": "house roof church tree meadow",
            "castle": "tower flag house hill tree wall",
            "farm": "windmill barn house field tree wheat",
            "beach": "sea water wave palm sand",
            "open sea": "water wave horizon",
            "tropical island": "sea water palm sand",
            "harbour": "house water pier lamp light window village boat",
            "mountain lake": "mountain water tree pine reflection lake",
            "river valley": "river water tree mountain grass flower",
            "waterfall": "water rock tree river cliff",
            "city skyline": "water building window light tree river reflection skyscraper",
            "neon city": "sign light building street reflection window",
            "flower meadow": "flower grass tree mountain meadow",
            "blossom garden": "bridge pond water tree blossom grass river",
            "alien planet": "crater planet rock mountain moon",
            "space": "planet star nebula galaxy",
            "coral reef": "water coral bubble seaweed",
            "deep sea": "water bubble",
            "desert": "sand dune",
            "canyon": "rock cliff sand",
            "jungle": "vine tree leaf fern",
            "forest": "tree leaf grass",
            "autumn forest": "tree leaf",
            "misty pines": "tree pine",
            "savanna": "grass tree",
            "snowy mountains": "snow tree pine mountain rock",
            "arctic": "ice snow water iceberg",
            "volcano": "lava rock smoke mountain",
            "cave": "rock crystal",
            "railway": "rail track train tree",
        }.items()
    }
)
"""Things that a place shows anyway, in the singular."""
HAS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        name: frozenset(text.split())
        for name, text in {
            "coffee cup": "steam saucer foam",
            "birthday cake": "candle candles frosting birthday",
            "dancer": "tutu",
            "snowman": "nose carrot hat scarf",
            "pirate ship": "sail sails mast flag",
            "sailboat": "sail sails mast",
            "knight": "armour armor sword shield helmet cape",
            "samurai": "sword armour armor",
            "teacher": "blackboard",
            "astronaut": "helmet spacesuit suit",
            "spaghetti": "meatball meatballs sauce",
            "health worker": "stethoscope coat",
            "cook": "spoon hat",
            "chef": "pan hat",
            "cooking": "egg pan",
            "farmer": "pitchfork hat",
            "wizard": "staff beard hat robe",
            "witch": "broom hat",
            "king": "crown cape",
            "princess": "crown dress gown",
            "old man": "beard cane stick",
            "old woman": "cane stick",
            "fisherman": "rod",
            "hiker": "backpack",
            "train": "smoke steam carriage carriages",
            "house": "door window windows roof chimney garden",
            "cabin": "door window windows roof chimney",
            "castle": "tower towers flag flags gate",
            "wine glass": "wine",
            "beer mug": "beer foam",
            "campfire": "flame flames logs",
            "santa": "sleigh reindeer beard",
        }.items()
    }
)
"""Things that are seen with a subject."""
KIND_HOMES: Mapping[range, str] = MappingProxyType(
    {
        range(25, 26): "hall",
        range(26, 27): "castle",
        range(42, 50): "table",
        range(63, 65): "table",
        range(65, 66): "cosy room",
        range(67, 69): "concert",
        range(69, 73): "table",
        range(74, 81): "table",
        range(81, 82): "cosy room",
    }
)
"""The places where a kind of the cast is at home, by the numbers of kinds."""
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
