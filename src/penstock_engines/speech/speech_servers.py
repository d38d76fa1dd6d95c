"""The servers of speech: the voice and Whisper, each in its own process."""

from penstock_engines.serving.on_demand_server import OnDemandServer
from penstock_engines.serving.weights_plan import ModelServerOptions, WeightsPlan
from penstock_engines.speech.model_facts import WHISPER_MODEL, WHISPER_WEIGHTS


class VoiceServer(OnDemandServer):
    """A server of speech."""

    def __init__(self, options: ModelServerOptions) -> None:
        plan = WeightsPlan(
            name="voice",
            module="penstock_engines.speech.voice_child",
            libraries=("numpy", "onnxruntime", "hibari"),
            files=(),
            pull="pip install 'penstock[local]'",
            options=options,
        )
        super().__init__(plan)


class WhisperServer(OnDemandServer):
    """A server of transcripts."""

    def __init__(self, options: ModelServerOptions) -> None:
        plan = WeightsPlan(
            name="transcription server",
            module="penstock_engines.speech.whisper_child",
            libraries=("numpy", "onnxruntime"),
            files=(WHISPER_WEIGHTS,),
            pull=f"penstock models pull {WHISPER_MODEL}",
            options=options,
        )
        super().__init__(plan)
