package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"perch/cmd/perch/appliance"
	"perch/cmd/perch/config"
)

// checkConfig prints every fault of a configuration.
func checkConfig(_ context.Context, args []string, out io.Writer) error {
	rest, err := parse(newFlags("check-config"), args, 0, 1)
	if err != nil {
		return err
	}
	s := settings{config: strings.Join(rest, ""), judge: true}
	from := s.source()
	path, service := from.File, from.Service
	c, err := from.Load()
	if err == nil {
		err = appliance.CheckRecognizers(&c)
	}
	if err != nil {
		var wrong config.Faults
		if errors.As(err, &wrong) {
			return wrong
		}
		return config.Faults{err.Error()}
	}
	file := path
	if path == "" {
		path = "no file: the defaults"
	}
	for _, w := range c.Warnings(file, "", time.Now()) {
		fmt.Fprintf(out, "warning: %s: %s\n", w.Part, w.What)
	}
	if service != nil {
		fmt.Fprintf(out, "%s: no faults, and the service's user %s can read what it names\n", path, service.Name)
		return nil
	}
	fmt.Fprintf(out, "%s: no faults\n", path)
	return nil
}
