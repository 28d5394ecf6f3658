"""Side by side with other libraries; each module needs the library that it is named after, and no other does."""
