# perch-tools
