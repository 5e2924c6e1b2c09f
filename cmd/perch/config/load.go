package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"perch/remote/supervisor"
	"perch/voice/openjtalk"
)

// mostConfig is the size of the largest file, in bytes.
const mostConfig = 1 << 20

// Source is where a configuration is read from.
type Source struct {
	File    string   // the owner's, which is never written; may be ""
	Overlay string   // a file with the same keys, which override those of File; may be ""
	Environ []string // of the process, "NAME=value"
	// Options is a file whose keys override those of File: the options of Home Assistant's app. It
	// may be "".
	Options string
	// Service is the account that has to read what the configuration names, if that is not this
	// process's. Its rights are checked then.
	Service *Account
}

// Load reads the files and the environment over the defaults, and checks the result. Its error is
// Faults, or that a file cannot be read.
func (s Source) Load() (Config, error) {
	text, overlay, err := s.texts()
	if err != nil {
		return Default(), err
	}
	c, _, err := s.load(text, overlay)
	return c, err
}

// texts returns the contents of the owner's file and of the overlay. An overlay that does not exist is
// empty.
func (s Source) texts() (text, overlay []byte, err error) {
	if s.File != "" {
		if text, err = readConfig(s.File); err != nil {
			return nil, nil, err
		}
	}
	if s.Overlay != "" {
		if overlay, err = readConfig(s.Overlay); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	return text, overlay, err
}

// load reads the texts and the environment over the defaults, and checks the result.
func (s Source) load(text, overlay []byte) (Config, *checker, error) {
	c, k := s.defaults(), s.checker()
	k.read(&c, text)
	if len(k.found) > 0 && len(k.unread) == 0 {
		return c, k, k.found // it is no YAML
	}
	if o := k.overlayWith(&c, s.Overlay, overlay); len(o.found) > 0 && len(o.unread) == 0 {
		return c, k, k.found
	}
	if err := s.readOptions(k, &c); err != nil {
		return c, k, err
	}
	setVariables(k, &c, s.Environ)
	s.setHome(&c)
	addJapanese(k, &c)
	return c, k, check(k, &c, isApp(s.Environ))
}

func (s Source) checker() *checker {
	return &checker{file: s.File, overlay: s.Overlay, service: s.Service}
}

// Recheck checks a configuration that was changed after it was read.
func (s Source) Recheck(c *Config) error { return check(s.checker(), c, isApp(s.Environ)) }

func readConfig(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", explainDenied(err, ourselves()))
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, mostConfig+1))
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	if len(text) > mostConfig {
		return nil, fmt.Errorf("read the configuration: %s is larger than %d bytes", path, mostConfig)
	}
	return text, nil
}

// defaults returns the configuration with no key set.
func (s Source) defaults() Config {
	c := Default()
	if isApp(s.Environ) {
		c.MQTT.Broker = SupervisorBroker
		c.Web.Ingress, c.Web.IngressListen = []string{supervisor.Ingress}, appIngress
	}
	return c
}

// readOptions reads the options of Home Assistant's app, which have the keys of the file, over c. Its
// error is that they cannot be read.
func (s Source) readOptions(k *checker, c *Config) error {
	if s.Options == "" {
		return nil
	}
	text, err := readConfig(s.Options)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	o := k.overlayWith(c, s.Options, text)
	k.env = map[string]string{}
	for path := range o.lines {
		k.env[path] = "option " + path
	}
	return nil
}

// setHome sets the address of Home Assistant in engines of kind assist that have none, if this
// program is its app.
func (s Source) setHome(c *Config) {
	o, is := supervisor.FromEnvironment(s.Environ)
	if !is {
		return
	}
	for _, e := range slices.Concat(c.Speech.Recognizers, Recognizers(c.Speech.Synthesizers), Recognizers(c.Brains)) {
		if a, is := e.Options.(interface{ SetHome(url string) }); is {
			a.SetHome(o.Core())
		}
	}
}

// addJapanese adds openjtalk, which can read Japanese, if Japanese is spoken and the owner has chosen
// no synthesizer.
func addJapanese(k *checker, c *Config) {
	_, written := k.lines["speech.synthesizers"]
	if written || len(k.under("speech.synthesizers")) > 0 || !slices.Contains(c.spoken(), "ja") {
		return
	}
	c.Speech.Synthesizers = append(Synthesizers{{"openjtalk", &openjtalk.Options{}}}, c.Speech.Synthesizers...)
}
