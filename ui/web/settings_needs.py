"""Which variables the provider of a model reads: its key, and the address of another server."""

from __future__ import annotations

from typing import Final

# provider (the first part of a model id): who that is, variable of its key, variable of its address.
# LiteLLM's providers, those that people use most; of any other it is not known here what it reads.
PROVIDERS: Final[dict[str, tuple[str, str | None, str | None]]] = {
    "openai": ("OpenAI, or a server of your own", "OPENAI_API_KEY", "OPENAI_BASE_URL"),
    "anthropic": ("Anthropic", "ANTHROPIC_API_KEY", "ANTHROPIC_API_BASE"),
    "gemini": ("Google Gemini", "GEMINI_API_KEY", "GEMINI_API_BASE"),
    "azure": ("Azure OpenAI", "AZURE_API_KEY", "AZURE_API_BASE"),
    "mistral": ("Mistral", "MISTRAL_API_KEY", "MISTRAL_API_BASE"),
    "deepseek": ("DeepSeek", "DEEPSEEK_API_KEY", "DEEPSEEK_API_BASE"),
    "groq": ("Groq", "GROQ_API_KEY", "GROQ_API_BASE"),
    "openrouter": ("OpenRouter", "OPENROUTER_API_KEY", "OPENROUTER_API_BASE"),
    "together_ai": ("Together", "TOGETHERAI_API_KEY", None),
    "cohere": ("Cohere", "COHERE_API_KEY", "COHERE_API_BASE"),
    "xai": ("xAI", "XAI_API_KEY", "XAI_API_BASE"),
    "ollama": ("Ollama", None, "OLLAMA_API_BASE"),
}


def needs_of(model: str) -> tuple[str | None, str | None]:
    """The variables of key and address that calls of this model read; None: none, or it is not known."""
    provider = model.partition("/")[0] if "/" in model else ""
    _, key, address = PROVIDERS.get(provider, ("", None, None))
    return key, address


def owner_of(variable: str) -> str:
    """Whose key or address a variable holds; "" when that is not known."""
    return next((who for who, key, address in PROVIDERS.values() if variable in (key, address)), "")
