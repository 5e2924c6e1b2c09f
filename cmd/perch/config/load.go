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

// maxFileSize is the maximum size of a configuration file, in bytes.
const maxFileSize = 1 << 20

// Source says where a configuration is read from. Overlay overrides File, Options overrides both, and
// Environ overrides all files.
type Source struct {
	File    string       // path of the owner's file, which is never written; may be ""
	Overlay string       // path of the overlay, which holds the settings that Perch itself writes; may be ""
	Environ []string     // the environment of the process: "NAME=value"
	Options string       // path of the file with the options that Home Assistant gives to Perch as its app; may be ""
	Speech  *PerchSpeech // nil if perch-speech must not be looked for
	Service *Account     // the user who must be able to read the files that the configuration names; nil for the current user
}

// Load reads the files and the environment over the defaults, and checks the result. Its error is
// Faults, or the error of a file that cannot be read.
func (s Source) Load() (Config, error) {
	text, overlay, err := s.readFiles()
	if err != nil {
		return Default(), err
	}
	c, _, err := s.load(text, overlay)
	return c, err
}

// readFiles returns the contents of the owner's file and of the overlay. An overlay that does not exist
// is read as empty.
func (s Source) readFiles() (text, overlay []byte, err error) {
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

// load decodes the texts, the options and the environment over the defaults, and checks the result.
func (s Source) load(text, overlay []byte) (Config, *checker, error) {
	c, k := s.defaults(), s.checker()
	k.read(&c, text)
	if len(k.found) > 0 && len(k.unread) == 0 {
		return c, k, k.found // the file could not be decoded at all
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
	if s.Speech != nil {
		s.Speech.add(k, &c)
	}
	return c, k, check(k, &c, isApp(s.Environ))
}

// checker returns a checker without faults.
func (s Source) checker() *checker {
	return &checker{file: s.File, overlay: s.Overlay, service: s.Service}
}

// Recheck checks a configuration that was changed after Load.
func (s Source) Recheck(c *Config) error { return check(s.checker(), c, isApp(s.Environ)) }

// readConfig reads a file of at most maxFileSize bytes.
func readConfig(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", explainDenied(err, currentAccount()))
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFileSize+1))
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	if len(text) > maxFileSize {
		return nil, fmt.Errorf("read the configuration: %s is larger than %d bytes", path, maxFileSize)
	}
	return text, nil
}

// defaults returns the configuration that applies if no key is set. Some defaults differ if this program
// runs as an app of Home Assistant.
func (s Source) defaults() Config {
	c := Default()
	if isApp(s.Environ) {
		c.MQTT.Broker = SupervisorBroker
		c.Web.Ingress, c.Web.IngressListen = []string{supervisor.Ingress}, appIngress
	}
	return c
}

// readOptions decodes the options that Home Assistant gives to Perch as its app into c. The options have the
// same keys as the owner's file. readOptions returns an error if the file of options exists and cannot be
// read.
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

// setHome sets the address of Home Assistant in engines that need it and have no address configured, if
// this program runs as an app of Home Assistant.
func (s Source) setHome(c *Config) {
	o, ok := supervisor.FromEnvironment(s.Environ)
	if !ok {
		return
	}
	for _, e := range slices.Concat(c.Speech.Recognizers, Recognizers(c.Speech.Synthesizers), Recognizers(c.Brains)) {
		if a, ok := e.Options.(interface{ SetHome(url string) }); ok {
			a.SetHome(o.Core())
		}
	}
}

// addJapanese adds openjtalk, which can read Japanese, before the default synthesizer, if a robot speaks
// Japanese and no synthesizer is configured.
func addJapanese(k *checker, c *Config) {
	if !k.isDefault("speech.synthesizers") || !slices.Contains(c.spoken(), "ja") {
		return
	}
	c.Speech.Synthesizers = append(Synthesizers{{"openjtalk", &openjtalk.Options{}}}, c.Speech.Synthesizers...)
}
