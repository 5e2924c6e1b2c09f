package main

import (
	"context"
	"errors"
	"io"
)

// shellCommands are the commands as they answer to --help.
func shellCommands(ctx context.Context) ([]shellCommand, error) {
	var all []shellCommand
	for _, c := range commands() {
		answered := c.run(ctx, []string{"--help"}, io.Discard)
		var help helpError
		if errors.As(answered, &help) {
			help.arguments = c.arguments
			answered = help
		}
		described, err := describe(c.name, c.does, answered)
		if err != nil {
			return nil, err
		}
		all = append(all, described)
	}
	return all, nil
}

// completion writes a script for a shell.
func completion(ctx context.Context, args []string, out io.Writer) error {
	shell, err := parse(newFlags("completion"), args, 1, 1)
	if err != nil {
		return err
	}
	all, err := shellCommands(ctx)
	if err != nil {
		return err
	}
	if err := writeCompletion(out, shell[0], "perch", all); err != nil {
		return usageError(err.Error())
	}
	return nil
}
