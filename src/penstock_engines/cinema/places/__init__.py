"""All the places that a clip can play in, by name."""

from collections.abc import Mapping
from types import MappingProxyType

from penstock_engines.cinema.places.built.concert_hall import CONCERT_HALL_PLACES
from penstock_engines.cinema.places.built.garden import GARDEN_PLACES
from penstock_engines.cinema.places.built.rooms import ROOMS_PLACES
from penstock_engines.cinema.places.built.settlements import SETTLEMENTS_PLACES
from penstock_engines.cinema.places.built.streets import STREETS_PLACES
from penstock_engines.cinema.places.dreamland import DREAMLAND_PLACES
from penstock_engines.cinema.places.dry_land import DRY_LAND_PLACES
from penstock_engines.cinema.places.grassland import GRASSLAND_PLACES
from penstock_engines.cinema.places.inland_water import INLAND_WATER_PLACES
from penstock_engines.cinema.places.jungle import JUNGLE_PLACES
from penstock_engines.cinema.places.outer_space import OUTER_SPACE_PLACES
from penstock_engines.cinema.places.shores import SHORES_PLACES
from penstock_engines.cinema.places.snow_and_ice import SNOW_AND_ICE_PLACES
from penstock_engines.cinema.places.underground import UNDERGROUND_PLACES
from penstock_engines.cinema.places.underwater import UNDERWATER_PLACES
from penstock_engines.cinema.places.woods import WOODS_PLACES
from penstock_engines.cinema.scene import Place

PLACES: Mapping[str, Place] = MappingProxyType(
    {
        place.name: place
        for group in (
            SHORES_PLACES,
            INLAND_WATER_PLACES,
            UNDERWATER_PLACES,
            WOODS_PLACES,
            JUNGLE_PLACES,
            GRASSLAND_PLACES,
            DRY_LAND_PLACES,
            SNOW_AND_ICE_PLACES,
            STREETS_PLACES,
            SETTLEMENTS_PLACES,
            ROOMS_PLACES,
            CONCERT_HALL_PLACES,
            GARDEN_PLACES,
            UNDERGROUND_PLACES,
            OUTER_SPACE_PLACES,
            DREAMLAND_PLACES,
        )
        for place in group
    }
)
