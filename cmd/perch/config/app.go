package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"perch/remote/supervisor"
)

// Where things are in an app of Home Assistant.
const (
	appData   = "/data"
	appFolder = "/config" // which its owner sees
)

// The address for the ingress of Home Assistant, where this program is its app. It is one
// that other machines have no way to, and that no machine without a Supervisor has.
const appIngress = supervisor.Gateway + ":8005"

// isApp reports whether Home Assistant's Supervisor has started this program.
func isApp(environ []string) bool {
	_, is := supervisor.FromEnvironment(environ)
	return is
}

// appConfig is the configuration file of an app; empty is that this is none.
func appConfig() string {
	if !isApp(os.Environ()) {
		return ""
	}
	return filepath.Join(appFolder, "perch.yaml")
}

// AppOptions is the file in the data directory into which the Supervisor writes what the
// owner sets in Home Assistant; empty where there is none.
func AppOptions(data string) string {
	path := filepath.Join(data, "options.json")
	if _, err := os.Stat(path); err != nil || !isApp(os.Environ()) {
		return ""
	}
	return path
}

// defaults are what a key is that nobody has set.
func (s Source) defaults() Config {
	c := Default()
	if isApp(s.Environ) {
		c.MQTT.Broker = SupervisorBroker
		c.Web.Ingress, c.Web.IngressListen = []string{supervisor.Ingress}, appIngress
	}
	return c
}

// options reads the options of Home Assistant's app over c. They have the names and the
// forms of the file's keys. Its error is that they cannot be read.
func (k *checker) options(c *Config) error {
	if k.Options == "" {
		return nil
	}
	text, err := readConfig(k.Options)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	o := k.over(c, k.Options, text)
	k.env = map[string]string{}
	for path := range o.lines {
		k.env[path] = "option " + path
	}
	return nil
}

// app has engines that are Home Assistant's ask the one whose app this is, where they
// name no other.
func (k *checker) app(c *Config) {
	o, is := supervisor.FromEnvironment(k.Environ)
	if !is {
		return
	}
	for _, e := range slices.Concat(c.Speech.Recognizers, Recognizers(c.Speech.Synthesizers), Recognizers(c.Brains)) {
		if a, is := e.Options.(interface{ SetHome(url string) }); is {
			a.SetHome(o.Core())
		}
	}
}
