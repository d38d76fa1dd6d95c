"""The embedding server: MiniLM in its own process."""

from penstock_engines.minilm.model_facts import MODEL, VOCABULARY
from penstock_engines.serving.on_demand_server import OnDemandServer
from penstock_engines.serving.weights_plan import ModelServerOptions, WeightsPlan


class EmbeddingServer(OnDemandServer):
    """A server of embeddings."""

    def __init__(self, options: ModelServerOptions) -> None:
        plan = WeightsPlan(
            name="embedding server",
            module="penstock_engines.minilm.embedding_child",
            libraries=("numpy", "onnxruntime"),
            files=(MODEL, VOCABULARY),
            pull="penstock models pull",
            options=options,
        )
        super().__init__(plan)
