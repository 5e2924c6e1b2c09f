package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"

	"perch/ota/espimage"
)

// assetsFlags are the options of perch-tools assets.
type assetsFlags struct {
	reach
	file   string
	name   string
	robot  string // its id, or its name
	reboot bool
	check  bool
}

// assets puts a file of fonts, wake words and faces where robots can download
// it, and points a robot at it.
func assets(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	f, err := parseAssets(args, stdout)
	if err != nil {
		return err
	}
	a, err := readAssets(f.file) // a bad one need not go over the network
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "asset file of %d bytes\n", a.Size)
	for _, each := range a.Files {
		fmt.Fprintf(stdout, "  %-31s %d bytes\n", each.Name, each.Size)
	}
	if f.check {
		return nil
	}
	if err := f.upload(ctx, a.Size, stderr); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "robots can download it as %s\n", f.name)
	if f.robot == "" {
		fmt.Fprintln(stdout, "no robot is told of it yet: --robot names one whose channel is open")
		return nil
	}
	if err := f.point(ctx); err != nil {
		return fmt.Errorf("it is there, but %s is not told of it: %w", f.robot, err)
	}
	if !f.reboot {
		fmt.Fprintf(stdout, "%s fetches it when it next starts, within a day\n", f.robot)
		return nil
	}
	request, err := f.request(ctx, http.MethodPost, nil, nil, "devices", f.robot, "reboot")
	if err != nil {
		return err
	}
	if err := send(request); err != nil {
		return fmt.Errorf("the robot is told, but does not restart: %w", err)
	}
	fmt.Fprintf(stdout, "%s restarts, and fetches it\n", f.robot)
	return nil
}

func parseAssets(args []string, stdout io.Writer) (*assetsFlags, error) {
	f := &assetsFlags{}
	s := flag.NewFlagSet("perch-tools assets", flag.ContinueOnError)
	s.SetOutput(io.Discard)
	f.register(s)
	s.StringVar(&f.name, "name", "", "`NAME` that it is kept under; without it, the file's own")
	robot := s.String("robot", "", "`ROBOT` to point at it, whose channel must be open")
	s.BoolVar(&f.reboot, "reboot", false, "restart that robot, so that it fetches it")
	s.BoolVar(&f.check, "check", false, "only read the file and say what it holds")
	files, err := parseAround(s, args)
	if errors.Is(err, flag.ErrHelp) {
		return nil, helped(s, stdout, "FILE.bin")
	}
	if err == nil && *robot != "" {
		f.robot, err = robotNamed(*robot)
	}
	switch {
	case err != nil:
	case len(files) != 1:
		err = fmt.Errorf("it takes one file, not %d", len(files))
	case f.reboot && *robot == "":
		err = errors.New("--reboot goes with --robot")
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUsage, err)
	}
	f.file = files[0]
	if f.name == "" {
		f.name = filepath.Base(f.file)
	}
	return f, nil
}

func readAssets(name string) (espimage.Assets, error) {
	file, err := os.Open(name)
	if err != nil {
		return espimage.Assets{}, fmt.Errorf("open the assets: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return espimage.Assets{}, fmt.Errorf("open the assets: %w", err)
	}
	if !info.Mode().IsRegular() {
		return espimage.Assets{}, fmt.Errorf("%s is no file", name)
	}
	return espimage.ReadAssets(file, info.Size())
}

func (f *assetsFlags) upload(ctx context.Context, size int64, stderr io.Writer) error {
	file, err := os.Open(f.file)
	if err != nil {
		return fmt.Errorf("open the assets: %w", err)
	}
	defer file.Close()
	b := &bar{from: io.LimitReader(file, size), size: size, to: stderr, shown: -1, live: isTerminal(stderr)}
	request, err := f.request(ctx, http.MethodPost, b, nil, "assets", f.name)
	if err != nil {
		return err
	}
	request.ContentLength = size
	request.Header.Set("Content-Type", "application/octet-stream")
	request.Header.Set("Expect", "100-continue") // a refusal comes before the file goes
	err = send(request)
	b.end()
	return err
}

// point has the appliance tell the robot, by the tool that its firmware has.
func (f *assetsFlags) point(ctx context.Context) error {
	body, err := json.Marshal(map[string]string{"name": f.name})
	if err != nil {
		return fmt.Errorf("encode the name: %w", err)
	}
	request, err := f.request(ctx, http.MethodPost, bytes.NewReader(body), nil, "devices", f.robot, "assets")
	if err != nil {
		return err
	}
	return send(request)
}
