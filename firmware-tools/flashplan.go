package main

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"perch/ota/espimage"
)

// robotFlash describes a robot and the content of its flash before anything is written.
type robotFlash struct {
	chip           espimage.Chip
	revision       int   // chip revision: major * 100 + minor
	bootLoader     int64 // address of the boot loader in the flash
	size           int64 // size of the flash in bytes
	table          espimage.Table
	tableErr       error              // reason why table is empty; nil otherwise
	startPartition espimage.Partition // partition that the robot starts next; its size is 0 if unknown
	app            espimage.App       // application in startPartition
}

// maxROMAddress is the number of bytes of flash that the loader in a chip's ROM can address. The
// loader's addresses have three bytes; a larger address would wrap around to the beginning.
const maxROMAddress = 16 << 20

// flashFile is a file to be written to the flash.
type flashFile struct {
	name  string
	data  []byte
	image espimage.Image
}

// flashWrite is one write to the flash.
type flashWrite struct {
	name   string // for messages, such as "ota_0" or "otadata"
	offset int64
	data   []byte
}

// flashPlan lists the planned writes.
type flashPlan struct {
	file   string // description of the file
	writes []flashWrite
	notes  []string // for the user
}

// destination is an area of the flash to write or to save: a partition, an area in front of the
// partitions, or the whole flash.
type destination struct {
	name      string // for messages
	offset    int64
	size      int64              // maximum number of bytes to write
	partition espimage.Partition // the zero value if the area is not a partition
	system    bool               // the robot needs the area to work; writing requires --all
}

// plan returns the writes for a file. It returns an error if the file does not fit into its
// destination, if the robot could not use the file there, or if the write requires --all or --board.
func (f *flashFlags) plan(r robotFlash, file flashFile) (flashPlan, error) {
	dest, err := f.destination(r, file)
	if err != nil {
		return flashPlan{}, err
	}
	if dest.system && !f.all {
		return flashPlan{}, fmt.Errorf("%s (%s) would be written to %s, on which the robot depends; to write it anyway, add --all", file.name,
			file.image.Kind, dest.name)
	}
	if int64(len(file.data)) > dest.size {
		return flashPlan{}, fmt.Errorf("%s has %d bytes, and %s takes %d: nothing is written past its end", file.name, len(file.data), dest.name,
			dest.size)
	}
	if dest.offset+int64(len(file.data)) > maxROMAddress {
		return flashPlan{}, fmt.Errorf("%s would end beyond the first 16 MB of flash, which is all that the loader in the robot's chip can address; "+
			"Espressif's own build of esptool can write there, with its stub loader", file.name)
	}
	kind, app := file.image.Kind, file.image.App
	p := flashPlan{file: fmt.Sprintf("%s, %d bytes", kind, len(file.data)), writes: []flashWrite{{dest.name, dest.offset, file.data}}}
	switch kind {
	case espimage.Application:
		p.file = fmt.Sprintf("%s %s for %v, %d bytes", app.Project, app.Version, file.image.Chip, len(file.data))
		err = f.planApp(&p, r, file, dest)
	case espimage.AssetFile:
		_, err = espimage.ReadAssets(bytes.NewReader(file.data), int64(len(file.data)))
		if dest.partition.Name != "assets" {
			err = fmt.Errorf("the firmware looks for assets in the partition assets, not in %s", dest.name)
		}
	case espimage.Merged:
		err = planWhole(&p, r, file, dest)
	case espimage.Settings:
		if !dest.partition.IsSettings() || int64(len(file.data)) != dest.partition.Size {
			err = fmt.Errorf("a settings file replaces a whole settings partition, and %s is not one of %d bytes", dest.name, len(file.data))
		}
	case espimage.BootLoader:
		err = espimage.CheckBootLoader(file.data, r.target())
		if err == nil && dest.offset != r.bootLoader {
			err = fmt.Errorf("a boot loader belongs at %#x of an %v", r.bootLoader, r.chip)
		}
	case espimage.PartitionTable:
		_, err = espimage.ParseTable(file.data)
		if err == nil && dest.offset != espimage.TableOffset {
			err = fmt.Errorf("a partition table belongs at %#x", int64(espimage.TableOffset))
		}
	}
	return p, err
}

// target returns the constraints that the robot's chip puts on an image.
func (r robotFlash) target() espimage.Target {
	return espimage.Target{Chip: r.chip, Revision: r.revision}
}

// destination returns the destination that --at selects or, without --at, the usual destination
// for this kind of file.
func (f *flashFlags) destination(r robotFlash, file flashFile) (destination, error) {
	address, err := strconv.ParseInt(f.at, 0, 64)
	// belongs reports whether --at is the given offset or, without --at, whether the file is of
	// the given kind.
	belongs := func(offset int64, kind espimage.Kind) bool {
		return err == nil && address == offset || f.at == "" && file.image.Kind == kind
	}
	switch kind := file.image.Kind; {
	case kind == espimage.Merged && belongs(0, kind):
		return destination{name: "the whole flash", size: r.size, system: true}, nil
	case belongs(r.bootLoader, espimage.BootLoader):
		return destination{name: "the boot loader", offset: r.bootLoader, size: espimage.TableOffset - r.bootLoader, system: true}, nil
	case belongs(espimage.TableOffset, espimage.PartitionTable):
		return destination{name: "the partition table", offset: espimage.TableOffset, size: espimage.TableSize, system: true}, nil
	case r.tableErr != nil:
		return destination{}, r.tableErr
	case err == nil:
		return r.destinationAt(address)
	case f.at != "":
		return r.destinationNamed(f.at)
	case kind == espimage.AssetFile:
		return r.destinationNamed("assets")
	case kind == espimage.Settings:
		return r.destinationNamed("nvs")
	case r.startPartition.Size == 0:
		return destination{}, errors.New("the robot has no partition for an application: write a merged image of its board, with --all")
	}
	return partitionDestination(r.startPartition), nil
}

// partitionDestination returns a whole partition as a destination.
func partitionDestination(p espimage.Partition) destination {
	system := p.IsSettings() || p.Type > espimage.DataPartition
	return destination{name: p.Name, offset: p.Offset, size: p.Size, partition: p, system: system}
}

// destinationNamed returns the partition with the given name as a destination.
func (r robotFlash) destinationNamed(name string) (destination, error) {
	p, ok := r.table.Named(name)
	if ok {
		return partitionDestination(p), nil
	}
	var names []string
	for _, partition := range r.table {
		names = append(names, partition.Name)
	}
	return destination{}, fmt.Errorf("the robot has no partition %s, but: %s", name, strings.Join(names, ", "))
}

// destinationAt returns the partition that begins at the given address as a destination.
func (r robotFlash) destinationAt(address int64) (destination, error) {
	p, ok := r.table.At(address)
	switch {
	case !ok:
		return destination{}, fmt.Errorf("there is no partition at %#x: set --at to the name or the address of one", address)
	case p.Offset != address:
		return destination{}, fmt.Errorf("%#x is in the middle of %s, which begins at %#x", address, p.Name, p.Offset)
	}
	return partitionDestination(p), nil
}

// planApp checks an application. With --boot it adds a write to the partition otadata that makes the
// robot start this application. A robot without otadata always starts the same partition.
func (f *flashFlags) planApp(p *flashPlan, r robotFlash, file flashFile, dest destination) error {
	t := r.target()
	t.Slot = dest.size
	switch {
	case dest.partition.Size == 0 || !dest.partition.IsApp(): // an area without a partition has no type
		return fmt.Errorf("an application must be written to a partition for applications, and %s is not one", dest.name)
	case file.image.Fits(t) != nil:
		return fmt.Errorf("%s would not start: %w", file.name, file.image.Fits(t))
	case r.app.Project != "" && r.app.Project != file.image.App.Project && f.board == "":
		return fmt.Errorf(
			"the robot has firmware of the project %s, and %s belongs to %s. An image does not name its board, and an image for another "+
				"board does not work. If this image was built for this robot, confirm that with --board BOARD",
			r.app.Project, file.name, file.image.App.Project)
	}
	otadata, ok := r.table.OTAData()
	if f.boot && !ok && dest.partition != r.startPartition {
		return fmt.Errorf("the robot has no otadata partition that could select %s; it starts %s", dest.name, r.startPartition.Name)
	}
	if f.boot && ok {
		b, err := r.table.SelectSlot(dest.partition)
		if err != nil {
			return err
		}
		p.writes = append(p.writes, flashWrite{otadata.Name, otadata.Offset, b})
		p.notes = append(p.notes, fmt.Sprintf("the robot then starts %s", dest.name))
	} else if dest.partition != r.startPartition {
		p.notes = append(p.notes, fmt.Sprintf("the robot goes on to start %s, which its otadata selects; with --boot it starts %s", r.startPartition.Name,
			dest.name))
	}
	return nil
}

// planWhole checks a merged image, which is written from address 0 on. It adds a note for each
// settings partition that the image replaces.
func planWhole(p *flashPlan, r robotFlash, file flashFile, dest destination) error {
	if dest.offset != 0 {
		return errors.New("a merged image belongs at 0")
	}
	table, err := espimage.CheckWhole(file.data, espimage.WholeTarget{Target: r.target(), BootLoader: r.bootLoader, Flash: r.size})
	if err != nil {
		return fmt.Errorf("%s would not start: %w", file.name, err)
	}
	for _, part := range table {
		if part.IsSettings() && part.Offset < int64(len(file.data)) {
			p.notes = append(p.notes,
				fmt.Sprintf("%s is replaced, too: the robot forgets its Wi-Fi, its appliance and its identity (`perch-tools robot flash --save "+
					"--at %s FILE` saves a copy)", part.Name, part.Name))
		}
	}
	return nil
}

// securityError returns an error if one of a robot's security settings prevents writing.
func securityError(secureDownload, encrypted, secureBoot bool) error {
	switch {
	case secureDownload:
		return errors.New(
			"the robot is in secure download mode: its loader cannot read the flash, and written data could not be verified. Nothing is " +
				"written; the manufacturer's tools may work")
	case encrypted:
		return errors.New("the robot's flash is encrypted, with a key that only its chip has: it could not read data written here. It accepts " +
			"upgrades over the network: perch-tools firmware publish")
	case secureBoot:
		return errors.New(
			"the robot starts only firmware that its manufacturer has signed (secure boot), and a write over USB could leave it without any. " +
				"It accepts upgrades over the network: perch-tools firmware publish")
	}
	return nil
}
