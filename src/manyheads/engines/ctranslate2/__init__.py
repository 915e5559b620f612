"""CTranslate2."""
