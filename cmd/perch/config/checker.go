package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"perch/language"
	"perch/secret"
)

// checker collects the faults of a configuration. It records where each key was set. Its maps are indexed
// by the paths of configuration keys, such as "speech.recognizers.0.kind".
type checker struct {
	file    string   // path of the owner's file; in a checker that overlayWith returns, its argument file
	overlay string   // path of the overlay; may be ""
	service *Account // the user who must be able to read the configured files; nil for the user of this process
	found   Faults
	lines   map[string]line     // the line where a key is set
	covered map[string]bool     // keys that overlayWith has set; true if the owner's file sets the key too
	env     map[string]string   // the environment variable that sets a key, or "option KEY" for an option of the app
	unread  []string            // sections that could not be read completely; further faults in them are not reported
	choices map[string][]string // the values that a key may have
}

// fault adds a fault of the key at path, unless the key's section, or a section below the key, could not be
// read completely.
func (k *checker) fault(path string, err error) {
	contains := func(unread string) bool { return unread == section(path) || strings.HasPrefix(unread, path+".") }
	if slices.ContainsFunc(k.unread, contains) {
		return
	}
	k.found = append(k.found, k.locate(path, err))
}

// section returns the part of the configuration that a key belongs to: a top-level key, or an entry
// of a top-level list.
func section(path string) string {
	key, below, _ := strings.Cut(path, ".")
	index, _, _ := strings.Cut(below, ".")
	if _, err := strconv.Atoi(index); err == nil {
		return key + "." + index
	}
	return key
}

// locate returns a fault of a key. The fault has the file and line where the key, or else the innermost section
// around it, is set. If k.env has the key, the message names the variable or option instead.
func (k *checker) locate(path string, err error) Fault {
	if name, ok := k.env[path]; ok {
		return fault(fmt.Errorf("%s: %w", name, err))
	}
	f := fault(err)
	f.Key = path
	for key := path; key != ""; key = key[:max(0, strings.LastIndexByte(key, '.'))] {
		if l, ok := k.lines[key]; ok {
			return k.atLine(f, l)
		}
	}
	return f
}

// fileFault returns a fault in a line of k.file, or in the whole file if number is 0.
func (k *checker) fileFault(number int, err error) Fault {
	return k.atLine(fault(err), line{k.file, number})
}

// atLine returns the fault f with its line set.
func (k *checker) atLine(f Fault, l line) Fault {
	f.file, f.Line = l.file, l.number
	f.overlay = l.file != "" && l.file == k.overlay
	return f
}

// failed adds a fault if err is not nil. If k.service is set, failed ignores errors of files that this process
// may not read: the service's user may be able to read them.
func (k *checker) failed(path string, err error) {
	denied := errors.Is(err, fs.ErrPermission)
	if err == nil || denied && k.service != nil {
		return
	}
	if denied {
		err = explainDenied(err, currentAccount())
	}
	k.fault(path, err)
}

// failedEach adds a fault for each error that errors.Join has joined in err.
func (k *checker) failedEach(path string, err error) {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		k.failed(path, err)
		return
	}
	for _, part := range joined.Unwrap() {
		k.failedEach(path, part)
	}
}

// keyErrors adds a fault for each language.KeyError in err, and puts prefix before the key. If err
// contains no KeyError, it adds err as a fault of the section.
func (k *checker) keyErrors(section, prefix string, err error) {
	keyErrs := keyErrorsIn(err)
	for _, e := range keyErrs {
		k.fault(prefix+bracketsToDots.Replace(e.Key), e.Why)
	}
	if len(keyErrs) == 0 {
		k.failed(section, err)
	}
}

// keyErrorsIn returns err if it is a language.KeyError, or the KeyErrors that errors.Join has joined in it.
func keyErrorsIn(err error) (keyErrs []language.KeyError) {
	switch e := err.(type) {
	case language.KeyError:
		return []language.KeyError{e}
	case interface{ Unwrap() []error }:
		for _, part := range e.Unwrap() {
			keyErrs = append(keyErrs, keyErrorsIn(part)...)
		}
	}
	return keyErrs
}

// bracketsToDots turns "rules[0].do", as errors of package perception write it, into "rules.0.do".
var bracketsToDots = strings.NewReplacer("[", ".", "]", "")

// keysBelow returns the names of the keys that were set directly below a path, sorted.
func (k *checker) keysBelow(path string) []string {
	set := map[string]bool{}
	for _, key := range slices.AppendSeq(slices.Collect(maps.Keys(k.lines)), maps.Keys(k.env)) {
		if rest, below := strings.CutPrefix(key, path+"."); below {
			name, _, _ := strings.Cut(rest, ".")
			set[name] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}

// oneOf checks that a value is one of the allowed values.
func (k *checker) oneOf(path, value string, allowed ...string) {
	k.setChoices(path, allowed)
	if !slices.Contains(allowed, value) {
		k.fault(path, fmt.Errorf("it must be one of %s, not %q", strings.Join(allowed, ", "), value))
	}
}

// setChoices records the values that a key may have, for a form on the page.
func (k *checker) setChoices(path string, choices []string) {
	if k.choices == nil {
		k.choices = map[string][]string{}
	}
	k.choices[path] = choices
}

// between checks that n is in a range that includes both bounds.
func (k *checker) between(path string, n, minimum, maximum int) {
	if n < minimum || n > maximum {
		k.fault(path, fmt.Errorf("it must be %d to %d, not %d", minimum, maximum, n))
	}
}

// listen checks an address to listen on.
func (k *checker) listen(path, address string) {
	k.failed(path, checkAddress(address))
}

// loopback checks an address to listen on. It must be a loopback address, because clients need no access key.
func (k *checker) loopback(path, address string) {
	err := checkAddress(address)
	if err == nil && !Loopback(address) {
		err = fmt.Errorf("%q is served without a key and so must be a loopback address", address)
	}
	k.failed(path, err)
}

// Loopback reports whether an address to listen on can be reached from this machine only.
func Loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil || host == "localhost" {
		return err == nil
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// checkAddress checks that an address has the form "host:port".
func checkAddress(address string) error {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%q is not an address such as :8003 or 192.168.1.5:8003", address)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return fmt.Errorf("%q has no port from 0 to 65535", address)
	}
	return nil
}

// key checks an API's access key, which is either value or the content of file. path is the section of
// the configuration that contains the key.
func (k *checker) key(path, value, file string) {
	key, err := secret.Read("key", value, file)
	switch {
	case err != nil:
		k.failed(path, err)
	case key != "" && utf8.RuneCountInString(key) < minKeyLength:
		k.fault(path+".key", fmt.Errorf("it has %d characters; a key has %d or more", utf8.RuneCountInString(key), minKeyLength))
	}
}

// minKeyLength is the minimum length of an access key, in characters. Keys need not be longer, since the number
// of attempts to guess a key is limited.
const minKeyLength = 8
