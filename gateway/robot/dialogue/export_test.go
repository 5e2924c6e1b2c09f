package dialogue

// MaxQueued is maxQueued.
const MaxQueued = maxQueued

func (s State) Phase() int       { return int(s.phase) }
func (s State) Greeting() bool   { return s.phase == greeting }
func (s State) TurnActive() bool { return s.turn.active }
func (s State) TurnBegun() bool  { return s.turn.begun }
func (s State) Published() bool  { return s.question.published }
func (s State) Waiting() int     { return len(s.queue.waiting) }
