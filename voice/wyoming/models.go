package wyoming

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"perch/remote"
)

// Types of the events by which perch-speech manages its models for programs on the same machine. They are not part of the
// protocol. The response may also be TypeError.
const (
	TypeModels      = "perch-models"        // no data; the response has the same type and ModelList
	TypeGetModel    = "perch-models-get"    // ModelName; requests TypeModelDone. The download ends when the client disconnects
	TypeRemoveModel = "perch-models-remove" // ModelName; requests TypeModelDone
	TypeModelDone   = "perch-models-done"   // no data
)

// ModelName is the data of TypeGetModel and TypeRemoveModel.
type ModelName struct {
	Name string `json:"name"`
}

// ModelList is the data of the response to TypeModels.
type ModelList struct {
	Models []SpeechModel `json:"models"`
}

// SpeechModel is a model that perch-speech has or can download.
type SpeechModel struct {
	Name      string `json:"name"`
	Does      string `json:"does"`               // what it is for, such as "hears", "speaks" or "detects"
	Language  string `json:"language,omitempty"` // BCP 47 tag; "" for any
	Bytes     int64  `json:"bytes,omitempty"`    // size of its files; 0 if unknown
	Licence   string `json:"licence,omitempty"`  // "" if unknown
	Source    string `json:"source,omitempty"`   // page about the model, or folder
	Installed bool   `json:"installed"`
	Getting   bool   `json:"getting,omitempty"`  // it is being downloaded
	Progress  int64  `json:"progress,omitempty"` // bytes of a model that is not installed that were downloaded
}

// Speech is the perch-speech at an address on this machine.
type Speech struct{ server *server }

// NewSpeech returns the perch-speech at an address (tcp://host:port). It opens no connection.
func NewSpeech(address string) (*Speech, error) {
	host, port, err := parseAddress(address)
	if err != nil {
		return nil, err
	}
	return &Speech{newServer(host, port, Options{Log: slog.New(slog.DiscardHandler)})}, nil
}

// Models returns the models that perch-speech has or can download. It returns an error if the server is another program.
func (s *Speech) Models(ctx context.Context) (list []SpeechModel, err error) {
	e, err := s.request(ctx, TypeModels, nil)
	var data ModelList
	if err == nil {
		err = e.Decode(&data)
	}
	return data.Models, err
}

// Get downloads a model, or the rest of it. It takes as long as the download. If ctx ends, the download ends, too.
func (s *Speech) Get(ctx context.Context, name string) error {
	_, err := s.request(ctx, TypeGetModel, ModelName{name})
	return err
}

// Remove removes a model.
func (s *Speech) Remove(ctx context.Context, name string) error {
	_, err := s.request(ctx, TypeRemoveModel, ModelName{name})
	return err
}

// request sends a request and returns the response, or its text as an error. A download has no timeout. request also
// requests the info of the server, because other programs may ignore the request without a response.
func (s *Speech) request(ctx context.Context, name string, data any) (response Event, err error) {
	err = s.server.call(ctx, connectTimeout, remote.Patience, func(_ context.Context, c *call) error {
		return errors.Join(c.send(TypeDescribe, nil, nil), c.send(name, data, nil))
	}, func(c *call) error {
		if name != TypeGetModel {
			if err := c.startTimeout(); err != nil {
				return err
			}
		}
		for range maxOtherEvents {
			e, err := c.r.Read()
			if err != nil {
				return err
			}
			switch e.Type {
			case TypeError:
				var f Failure
				if err := e.Decode(&f); err != nil {
					return err
				}
				return listenerError{errors.New(printable(f.Text))}
			case TypeModels, TypeModelDone:
				response = e
				return nil
			case TypeInfo:
				var info Info
				if err := decodeInfo(e, &info); err != nil {
					return err
				}
				if all := slices.Concat(info.ASR, info.TTS, info.Handle, info.Intent, info.Wake); len(all) > 0 && all[0].Name != "perch-speech" {
					return reason("it is not perch-speech")
				}
			}
		}
		return reason("it is not perch-speech")
	})
	return response, err
}
