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

// assetsFlags are the options of the command assets. Assets are fonts, wake words and faces
// for a robot, all in one file.
type assetsFlags struct {
	apiClient
	name   string
	robot  string // robot ID or name
	reboot bool
	check  bool // only check the file
	json   bool
}

// jsonAssets is the output about an asset file.
type jsonAssets struct {
	Size  int64            `json:"size"`
	Files []espimage.Asset `json:"files"`
	Name  string           `json:"name,omitempty"`  // name under which robots download the file
	Robot string           `json:"robot,omitempty"` // robot that downloads the file at its next start
}

// assetsCommand returns the command perch-tools firmware assets.
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
	s.StringVar(&f.name, "name", "", "`NAME` for the uploaded file; the file's own name if omitted")
	s.StringVar(&f.robot, "robot", "", "`ROBOT` that downloads the file; its channel must be open")
	s.BoolVar(&f.reboot, "reboot", false, "restart that robot, so that it downloads the file now")
	s.BoolVar(&f.check, "check", false, "only check the file and show its content")
	s.BoolVar(&f.json, "json", false, "print JSON")
	return c
}

// assets checks an asset file and, unless --check is set, offers it to robots.
func (f *assetsFlags) assets(ctx context.Context, file string, stdout, stderr io.Writer) error {
	var a espimage.Assets
	err := withFile(file, func(file io.ReaderAt, size int64) (err error) { // check the file before the upload
		a, err = espimage.ReadAssets(file, size)
		return err
	})
	if err != nil {
		return err
	}
	result := jsonAssets{Size: a.Size, Files: a.Files}
	progress := stdout
	if f.json {
		progress = io.Discard
	}
	fmt.Fprintf(progress, "asset file of %d bytes\n", a.Size)
	for _, asset := range a.Files {
		fmt.Fprintf(progress, "  %-31s %d bytes\n", asset.Name, asset.Size)
	}
	if !f.check {
		result.Name = cmp.Or(f.name, filepath.Base(file))
		if err := f.offer(ctx, file, result, progress, stderr); err != nil {
			return err
		}
		result.Robot = f.robot
	}
	if f.json {
		return command.WriteJSON(stdout, result)
	}
	return nil
}

// offer uploads the file. With --robot the appliance also sends the download URL to that robot, and
// with --reboot it restarts the robot.
func (f *assetsFlags) offer(ctx context.Context, file string, assets jsonAssets, stdout, stderr io.Writer) error {
	if err := f.upload(ctx, file, assets.Size, nil, stderr, "assets", assets.Name); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "robots can download it as %s\n", assets.Name)
	if f.robot == "" {
		fmt.Fprintln(stdout, "no robot downloads it yet: choose one with --robot; its channel must be open")
		return nil
	}
	// The appliance stores the URL by calling a tool of the robot's firmware, which requires an
	// open channel or a connection by MQTT.
	if err := f.post(ctx, map[string]string{"name": assets.Name}, "devices", f.robot, "assets"); err != nil {
		return fmt.Errorf("the file is uploaded, but %s does not download it: %w", f.robot, err)
	}
	if !f.reboot {
		fmt.Fprintf(stdout, "%s downloads it at its next start; the URL is valid for a day\n", f.robot)
		return nil
	}
	if err := f.post(ctx, nil, "devices", f.robot, "reboot"); err != nil {
		return fmt.Errorf("the robot has the URL, but does not restart: %w", err)
	}
	fmt.Fprintf(stdout, "%s restarts, and downloads it\n", f.robot)
	return nil
}
