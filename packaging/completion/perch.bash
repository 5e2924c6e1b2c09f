# perch
