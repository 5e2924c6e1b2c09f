package realtime

// Tokens returns the tokens that were used on the latest day, and the day.
func (e *Engine) Tokens() (tokens int, day string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.tokens, e.day
}
