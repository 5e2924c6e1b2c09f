package espimage_test

import (
	"bytes"
	"errors"
	"fmt"

	"perch/ota/espimage"
)

// A file is read before a robot gets it. What the robot would refuse is refused
// here, with a word for programs and a sentence for people.
func ExampleRead() {
	file := stackChan().bytes()
	image, err := espimage.Read(bytes.NewReader(file), int64(len(file)))
	fmt.Println(image.Kind, image.Chip, image.App.Project, image.App.Version, err)

	robot := espimage.Target{Chip: image.Chip, Revision: 1, Slot: 16 << 10}
	fmt.Println(image.Fits(robot))

	_, err = espimage.Read(bytes.NewReader(file[:1000]), 1000)
	if refusal, ok := errors.AsType[*espimage.Refusal](err); ok {
		fmt.Println(refusal.Word+":", refusal.Sentence)
	}
	// Output:
	// application esp32s3 stack-chan 1.2.4 <nil>
	// the image has 17120 bytes, and the robot's partition takes 16384
	// truncated: the file ends after 1000 bytes, within the image's segment 0; it was not copied whole
}
