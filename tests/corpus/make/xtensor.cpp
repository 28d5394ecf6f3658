// Write hierarchies with xtensor-zarr and read them back: see xtensor_.py, which runs this.
//
// program CASE STORE VALUES writes the hierarchy STORE, and what it reads from array a/b to the file VALUES/%a%b.

#include <cstdint>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "xtensor/xarray.hpp"
#include "xtensor-io/xio_blosc.hpp"
#include "xtensor-io/xio_gzip.hpp"
#include "xtensor-io/xio_zlib.hpp"
#include "xtensor-zarr/xzarr_file_system_store.hpp"
#include "xtensor-zarr/xzarr_hierarchy.hpp"

namespace xt
{
    // What the library of xtensor-zarr holds for stores on disk
    template void xzarr_register_compressor<xzarr_file_system_store, xio_gzip_config>();
    template void xzarr_register_compressor<xzarr_file_system_store, xio_zlib_config>();
    template void xzarr_register_compressor<xzarr_file_system_store, xio_blosc_config>();
    template class xchunked_array_factory<xzarr_file_system_store>;
}

using shape_type = std::vector<std::size_t>;
using hierarchy_type = xt::xzarr_hierarchy<xt::xzarr_file_system_store>;

std::string dumps;

template <class T>
xt::xarray<T> numbers(const shape_type& shape)
{
    xt::xarray<T> values = xt::xarray<T>::from_shape(shape);
    std::size_t number = 0;
    for (auto& value : values)
    {
        value = T(static_cast<float>(number++));
    }
    return values;
}

template <>
xt::xarray<bool> numbers<bool>(const shape_type& shape)
{
    xt::xarray<bool> values = xt::xarray<bool>::from_shape(shape);
    std::size_t number = 0;
    for (auto& value : values)
    {
        value = (number++ % 3) == 0;
    }
    return values;
}

template <class T>
void dump(hierarchy_type& hierarchy, const std::string& path)
{
    xt::zarray read = hierarchy.get_array(path.empty() ? path : "/" + path);
    const xt::xarray<T>& values = read.get_array<T>();
    std::string name = "%" + path;
    for (auto& letter : name)
    {
        letter = letter == '/' ? '%' : letter;
    }
    std::ofstream file(dumps + "/" + name, std::ios::binary);
    for (auto it = values.begin(); it != values.end(); ++it)
    {
        T value = *it;
        file.write(reinterpret_cast<const char*>(&value), sizeof(T));
    }
}

template <class C = xt::xio_binary_config>
xt::xzarr_create_array_options<C> options(const nlohmann::json& fill_value = nlohmann::json(), char layout = 'C', char separator = '/')
{
    xt::xzarr_create_array_options<C> made;
    made.chunk_memory_layout = layout;
    made.chunk_separator = separator;
    made.fill_value = fill_value;
    return made;
}

template <class T, class O>
void add(hierarchy_type& hierarchy, const std::string& path, const std::string& dtype, O o, bool fill = true, shape_type shape = {5, 7}, shape_type chunk_shape = {5, 4})
{
    try
    {
        {
            xt::zarray array = hierarchy.create_array(path.empty() ? path : "/" + path, shape, chunk_shape, dtype, o);
            if (fill)
            {
                xt::noalias(array) = numbers<T>(shape);
            }
        }
        dump<T>(hierarchy, path);
    }
    catch (const std::exception& error)
    {
        std::cout << path << ": " << error.what() << std::endl;
    }
}

void write_tree(hierarchy_type& h)
{
    add<bool>(h, "types/bool", "bool", options());
    add<std::int8_t>(h, "types/i1", "i1", options());
    add<std::uint8_t>(h, "types/u1", "u1", options());
    for (const std::string order : {"<", ">"})
    {
        const std::string name = order == "<" ? "types/little_" : "types/big_";
        add<std::int16_t>(h, name + "i2", order + "i2", options());
        add<std::int32_t>(h, name + "i4", order + "i4", options());
        add<std::int64_t>(h, name + "i8", order + "i8", options());
        add<std::uint16_t>(h, name + "u2", order + "u2", options());
        add<std::uint32_t>(h, name + "u4", order + "u4", options());
        add<std::uint64_t>(h, name + "u8", order + "u8", options());
        add<float>(h, name + "f4", order + "f4", options());
        add<double>(h, name + "f8", order + "f8", options());
    }
    auto described = options<xt::xio_gzip_config>(6.5);
    described.attrs = {{"question", "life"}, {"answer", 42}, {"nested", {{"list", {1, 2.5, nullptr, "ü/"}}}}};
    add<double>(h, "gzip", "<f8", described);
    add<std::int32_t>(h, "zlib", "<i4", options<xt::xio_zlib_config>(-7), true, {5, 7}, {3, 4});
    add<std::int32_t>(h, "blosc", "<i4", options<xt::xio_blosc_config>(-7));
    add<std::int32_t>(h, "blosc_big_endian", ">i4", options<xt::xio_blosc_config>(-7));
    add<std::int32_t>(h, "all_missing", "<i4", options(-7), false);
    add<float>(h, "all_missing_nan", "<f4", options("NaN"), false);
    add<std::int32_t>(h, "order_f", "<i4", options(0, 'F'), true, {5, 7}, {3, 4});
    add<std::uint16_t>(h, "order_f_cube", ">u2", options<xt::xio_gzip_config>(0, 'F'), true, {3, 4, 5}, {2, 3, 4});
    add<std::int16_t>(h, "dots", "<i2", options(0, 'C', '.'));
    add<std::int16_t>(h, "line", "<i2", options(0), true, {50}, {7});
    h.create_group("/marvin", {{"heart", "gold"}});
    h.create_group("/plain/deep");
    add<std::int32_t>(h, "marvin/android", "<i4", options(0));
}

int main(int, char* arguments[])
{
    const std::string name = arguments[1];
    dumps = arguments[3];
    xt::zdispatcher_t<xt::detail::xassign_dummy_functor, 1>::init();
    xt::zdispatcher_t<xt::detail::xmove_dummy_functor, 1>::init();
    xt::xzarr_register_compressor<xt::xzarr_file_system_store, xt::xio_gzip_config>();
    xt::xzarr_register_compressor<xt::xzarr_file_system_store, xt::xio_zlib_config>();
    xt::xzarr_register_compressor<xt::xzarr_file_system_store, xt::xio_blosc_config>();
    auto h = xt::create_zarr_hierarchy(std::string(arguments[2]));
    if (name == "root_array")
    {
        add<std::int32_t>(h, "", ">i4", options<xt::xio_gzip_config>(0));
    }
    else
    {
        write_tree(h);
    }
}
