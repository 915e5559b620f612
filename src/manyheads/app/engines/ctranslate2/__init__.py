"""CTranslate2: the fastest way to run a translator on a CPU."""
