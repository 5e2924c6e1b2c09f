package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"perch/command"
	"perch/ota/espimage"
)

type assetsFlags struct {
	apiClient
	name   string
	robot  string // its id, or its name
	reboot bool
	check  bool
	json   bool
}

// shownAssets is the output about an asset file.
type shownAssets struct {
	Size  int64            `json:"size"`
	Files []espimage.Asset `json:"files"`
	Name  string           `json:"name,omitempty"`  // name for downloads by robots
	Robot string           `json:"robot,omitempty"` // robot that downloads it at its next start
}

func assetsCommand() *cobra.Command {
	f := &assetsFlags{}
	c := &cobra.Command{
		Use:     "assets FILE.bin",
		Short:   "Have robots fetch fonts, wake words and faces from an appliance",
		Example: "perch-tools firmware assets faces.bin --robot kitchen --reboot",
		RunE: func(c *cobra.Command, args []string) (err error) {
			if f.robot != "" {
				if f.robot, err = robotNamed(f.robot); err != nil {
					return command.Usagef("%w", err)
				}
			}
			if f.reboot && f.robot == "" {
				return command.Usagef("--reboot goes with --robot")
			}
			return f.assets(c.Context(), args[0], c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	f.register(c)
	s := c.Flags()
	s.StringVar(&f.name, "name", "", "`NAME` that it is kept under; without it, the file's own")
	s.StringVar(&f.robot, "robot", "", "`ROBOT` that is to fetch it; its channel must be open")
	s.BoolVar(&f.reboot, "reboot", false, "restart that robot, so that it fetches it")
	s.BoolVar(&f.check, "check", false, "only read the file and show its content")
	s.BoolVar(&f.json, "json", false, "print JSON")
	return c
}

// assets uploads an asset file, and makes a robot download it.
func (f *assetsFlags) assets(ctx context.Context, file string, stdout, stderr io.Writer) error {
	var a espimage.Assets
	err := withFile(file, func(file io.ReaderAt, size int64) (err error) { // before the upload
		a, err = espimage.ReadAssets(file, size)
		return err
	})
	if err != nil {
		return err
	}
	shown := shownAssets{Size: a.Size, Files: a.Files}
	progress := stdout
	if f.json {
		progress = io.Discard
	}
	fmt.Fprintf(progress, "asset file of %d bytes\n", a.Size)
	for _, each := range a.Files {
		fmt.Fprintf(progress, "  %-31s %d bytes\n", each.Name, each.Size)
	}
	if !f.check {
		shown.Name = cmp.Or(f.name, filepath.Base(file))
		if err := f.offer(ctx, file, shown, progress, stderr); err != nil {
			return err
		}
		shown.Robot = f.robot
	}
	if f.json {
		return command.WriteJSON(stdout, shown)
	}
	return nil
}

// offer uploads the file, and sends its address to the robot.
func (f *assetsFlags) offer(ctx context.Context, file string, as shownAssets, stdout, stderr io.Writer) error {
	if err := f.upload(ctx, file, as.Size, nil, stderr, "assets", as.Name); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "robots can download it as %s\n", as.Name)
	if f.robot == "" {
		fmt.Fprintln(stdout, "no robot fetches it yet: --robot names one whose channel is open")
		return nil
	}
	// A tool of the firmware sets the address.
	if err := f.post(ctx, map[string]string{"name": as.Name}, "devices", f.robot, "assets"); err != nil {
		return fmt.Errorf("it is uploaded, but %s does not fetch it: %w", f.robot, err)
	}
	if !f.reboot {
		fmt.Fprintf(stdout, "%s fetches it when it next starts, within a day\n", f.robot)
		return nil
	}
	if err := f.post(ctx, nil, "devices", f.robot, "reboot"); err != nil {
		return fmt.Errorf("the robot has the address, but does not restart: %w", err)
	}
	fmt.Fprintf(stdout, "%s restarts, and fetches it\n", f.robot)
	return nil
}
