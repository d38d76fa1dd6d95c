// What the model behind the doors says: as in tests/sdks/sdk_script.py.

export const MODEL = "assistant";
export const GREETING = "Grüße, 世界! 👋 How can I help?";
export const REASONING = "They greet me, so I greet back. 🤔";
export const CITIES = ["Zürich", "東京 🗼"];
export const WEATHER = { city: "Zürich", degrees: 7 };
export const CUT = "Break off, please.";
export const OVERLOADED = "Be overloaded, please.";
export const tellWeather = (city) => `sun in "${city}"`;
