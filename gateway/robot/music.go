package robot

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"perch/agent"
	"perch/device"
	"perch/gateway/httpserver"
	"perch/gateway/robot/dialogue"
	"perch/voice/music"
)

// PlayMusic makes a robot play the owner's music with a name, or the first if name is "", and returns when the
// music is accepted: its source has sound. The music begins when the robot has spoken, pauses for speech, and ends
// with its source, by StopMusic, Abort or a touch, and when the robot's channel closes. It takes the place of
// earlier music. PlayMusic returns dialogue.ErrOffline if the channel is closed.
func (s *Server) PlayMusic(ctx context.Context, id device.ID, name string) error {
	r, err := s.sessions.of(id)
	if err != nil {
		return err
	}
	if !s.options.Robots.Trusts(id) {
		return errStrangersMusic
	}
	return r.startMusic(ctx, s.current.Load().Music, name)
}

// Music returns the names of the owner's music.
func (s *Server) Music() []string { return s.current.Load().Music.Names() }

// StopMusic stops the music of a robot. It does nothing if the robot plays none.
func (s *Server) StopMusic(ctx context.Context, id device.ID) error {
	return s.post(ctx, id, dialogue.StopMusic{})
}

// startMusic implements PlayMusic.
func (s *session) startMusic(ctx context.Context, library *music.Library, name string) error {
	playing, ok := library.Find(name)
	if !ok {
		return errUnknownMusic(library, name)
	}
	if !s.trying.TryLock() {
		return errTrying
	}
	defer s.trying.Unlock()
	if err := playing.Try(ctx); err != nil {
		return &httpserver.Fault{Word: "music_failed", Sentence: err.Error(), HTTP: http.StatusBadGateway, Err: err}
	}
	result := make(chan error, 1)
	if err := s.post(ctx, 0, dialogue.PlayMusic{Sound: &dialogue.Sound{Name: playing.Name(), Music: playing}, Answer: result}); err != nil {
		return err
	}
	return accepted(result)
}

// errStrangersMusic is the error for music on a robot that nobody has adopted.
var errStrangersMusic error = &httpserver.Fault{Word: "not_adopted", HTTP: http.StatusConflict,
	Sentence: "only a robot that somebody has adopted plays music; perch robot adopt ROBOT adopts it"}

// errTrying is the error for music while other music for the same robot is tried.
var errTrying error = &httpserver.Fault{Word: "busy", HTTP: http.StatusConflict,
	Sentence: "other music is being tried for this robot; try again in a few seconds"}

// errUnknownMusic returns the error for a name that the owner's music does not have.
func errUnknownMusic(library *music.Library, name string) error {
	sentence := fmt.Sprintf("there is no music %q; there is %s", name, strings.Join(library.Names(), ", "))
	if len(library.Names()) == 0 {
		sentence = "there is no music; the setting music names stations, files and folders"
	}
	return &httpserver.Fault{Word: "unknown_music", Sentence: sentence, HTTP: http.StatusNotFound}
}

// turnMusic implements agent.Music.
type turnMusic struct{ *turn }

// music returns the owner's music for the brains of the turn, or nil if there is none or the robot is a stranger.
func (t *turn) music() agent.Music {
	if !t.trusted.Load() || len(t.options.Music.Names()) == 0 {
		return nil
	}
	return turnMusic{t}
}

// Names implements agent.Music.
func (m turnMusic) Names() []string { return m.options.Music.Names() }

// Play implements agent.Music. The music begins once the robot has spoken.
func (m turnMusic) Play(ctx context.Context, name string) error {
	return m.session.startMusic(ctx, m.options.Music, name)
}

// Stop implements agent.Music.
func (m turnMusic) Stop(ctx context.Context) error {
	return m.session.post(ctx, 0, dialogue.StopMusic{})
}

// playMusic plays music until it ends. Without sound the robot does not enter its speaking state.
func (t *turn) playMusic(ctx context.Context, m dialogue.Music) error {
	t.release() // music needs no engine, and may last for hours
	t.speech.KeepMouthShut()
	begun := false
	return m.Play(ctx, func(pcm []int16) error {
		if !begun {
			begun = true
			// An empty sentence makes every firmware build enter its speaking state.
			if err := t.speech.Sentence(ctx, ""); err != nil {
				return err
			}
		}
		return t.speech.Sound(ctx, pcm)
	})
}
