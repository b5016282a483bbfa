"""Operations: readiness, availability, workers and waiting work of the server, on one page."""
