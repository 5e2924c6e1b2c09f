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

	"perch/language"
	"perch/secret"
)

// checker collects the faults of a configuration. It knows where each key was set.
type checker struct {
	file    string   // the owner's
	overlay string   // may be ""
	service *Account // who has to read what the configuration names; nil for this process
	found   Faults
	lines   map[string]line   // by key path, "speech.recognizers.0.kind"
	env     map[string]string // by key path, the variable
	// unread lists the sections that could not be read completely. They get no further faults.
	unread []string
	// choices lists the values that a key may have, for keys that were checked.
	choices map[string][]string
}

func (k *checker) fault(path string, why error) {
	unread := func(of string) bool { return of == section(path) || strings.HasPrefix(of, path+".") }
	if slices.ContainsFunc(k.unread, unread) {
		return
	}
	k.found = append(k.found, k.at(path, why))
}

// section returns the part of the configuration that a key belongs to: a key at the top, or an entry
// of a list there.
func section(path string) string {
	key, below, _ := strings.Cut(path, ".")
	place, _, _ := strings.Cut(below, ".")
	if _, err := strconv.Atoi(place); err == nil {
		return key + "." + place
	}
	return key
}

// at returns a fault of a key with its place: file and line, or a variable.
func (k *checker) at(path string, err error) Fault {
	if name, ok := k.env[path]; ok {
		return fault(fmt.Errorf("%s: %w", name, err))
	}
	f := fault(err)
	f.Key = path
	for key := path; key != ""; key = key[:max(0, strings.LastIndexByte(key, '.'))] {
		if at, ok := k.lines[key]; ok {
			return k.placed(f, at)
		}
	}
	return f
}

// ofFile returns a fault of the file, or of one of its lines.
func (k *checker) ofFile(number int, err error) Fault {
	return k.placed(fault(err), line{k.file, number})
}

// placed returns a fault with the line that it is at.
func (k *checker) placed(f Fault, at line) Fault {
	f.file, f.Line = at.file, at.number
	f.overlay = at.file != "" && at.file == k.overlay
	return f
}

// failed adds a fault if there is an error. A file that this process may not read is left to
// checkReads if the service's user has to read it.
func (k *checker) failed(at string, err error) {
	denied := errors.Is(err, fs.ErrPermission)
	if err == nil || denied && k.service != nil {
		return
	}
	if denied {
		err = explainDenied(err, ourselves())
	}
	k.fault(at, err)
}

// each adds a fault for each error that errors.Join has joined.
func (k *checker) each(at string, err error) {
	all, is := err.(interface{ Unwrap() []error })
	if !is {
		k.failed(at, err)
		return
	}
	for _, part := range all.Unwrap() {
		k.each(at, part)
	}
}

// named adds a fault for each language.KeyError in an error, or else one of the section.
func (k *checker) named(section, under string, err error) {
	all := keyed(err)
	for _, e := range all {
		k.fault(under+inList.Replace(e.Key), e.Why)
	}
	if len(all) == 0 {
		k.failed(section, err)
	}
}

// keyed returns the language.KeyErrors in an error.
func keyed(err error) (all []language.KeyError) {
	switch e := err.(type) {
	case language.KeyError:
		return []language.KeyError{e}
	case interface{ Unwrap() []error }:
		for _, part := range e.Unwrap() {
			all = append(all, keyed(part)...)
		}
	}
	return all
}

// inList turns a place in a list, as errors of rules write it, into one of a key.
var inList = strings.NewReplacer("[", ".", "]", "")

// under returns the keys that were set below a path, sorted.
func (k *checker) under(path string) []string {
	set := map[string]bool{}
	for _, key := range slices.AppendSeq(slices.Collect(maps.Keys(k.lines)), maps.Keys(k.env)) {
		if rest, below := strings.CutPrefix(key, path+"."); below {
			first, _, _ := strings.Cut(rest, ".")
			set[first] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}

func (k *checker) oneOf(path, value string, allowed ...string) {
	k.chosen(path, allowed)
	if !slices.Contains(allowed, value) {
		k.fault(path, fmt.Errorf("it is one of %s, not %q", strings.Join(allowed, ", "), value))
	}
}

// chosen records the values that a key may have, for a form.
func (k *checker) chosen(path string, among []string) {
	if k.choices == nil {
		k.choices = map[string][]string{}
	}
	k.choices[path] = among
}

func (k *checker) between(path string, n, least, most int) {
	if n < least || n > most {
		k.fault(path, fmt.Errorf("it is %d to %d, not %d", least, most, n))
	}
}

// listen checks an address to listen on.
func (k *checker) listen(path, a string) {
	_, err := splitAddress(a)
	k.failed(path, err)
}

// loopback checks an address that is served without a key.
func (k *checker) loopback(path, address string) {
	_, err := splitAddress(address)
	if err == nil && !Loopback(address) {
		err = fmt.Errorf("%q is served without a key and so must be a loopback address", address)
	}
	k.failed(path, err)
}

// Loopback reports whether only programs of this machine reach an address to listen on.
func Loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil || host == "localhost" {
		return err == nil
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// splitAddress checks "host:port" and returns the host.
func splitAddress(a string) (host string, err error) {
	host, port, err := net.SplitHostPort(a)
	if err != nil {
		return "", fmt.Errorf("%q is no address such as :8003 or 192.168.1.5:8003", a)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return "", fmt.Errorf("%q has no port from 0 to 65535", a)
	}
	return host, nil
}

// key checks the key of an API.
func (k *checker) key(path, value, file string) {
	key, err := secret.Read("key", value, file)
	switch {
	case err != nil:
		k.failed(path, err)
	case key != "" && len(key) < leastKey:
		k.fault(path+".key", fmt.Errorf("it has %d characters; a key has %d or more", len(key), leastKey))
	}
}

// leastKey is the length of the shortest key, which the limit on attempts protects from guesses.
const leastKey = 8
